# Writes a C++ file that holds the files of the dashboard's page, so that the
# program needs none of them when it runs.
#   cmake -DOUT=page_files.cpp -DFOLDER=page "-DFILES=index.html|app.js"
#     -P TroupePage.cmake
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_json "application/json")
set(type_svg "image/svg+xml")
set(rows "")
string(REPLACE "|" ";" names "${FILES}")
foreach(name IN LISTS names)
  file(READ "${FOLDER}/${name}" content)
  get_filename_component(extension "${name}" LAST_EXT)
  string(SUBSTRING "${extension}" 1 -1 extension)
  if(NOT DEFINED type_${extension})
    message(FATAL_ERROR "${name}: no media type is known for .${extension}")
  endif()
  string(APPEND rows
    "  {\"/${name}\", \"${type_${extension}}\", R\"page(${content})page\"},\n")
endforeach()
file(WRITE "${OUT}.new" "// Written by cmake/TroupePage.cmake.
#include <troupe/dashboard/page/page_files.hpp>

namespace troupe::dashboard {

namespace {

constexpr page_file files[] = {
${rows}};

} // namespace

const page_file* find_page_file(std::string_view path) noexcept {
  if (path == \"/\")
    path = \"/index.html\";
  else if (path == \"/favicon.ico\") // asked for beside answers that are no page
    path = \"/favicon.svg\";
  for (const auto& file : files)
    if (file.path == path)
      return &file;
  return nullptr;
}

} // namespace troupe::dashboard
")
file(COPY_FILE "${OUT}.new" "${OUT}" ONLY_IF_DIFFERENT)
file(REMOVE "${OUT}.new")
