// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/elastic/epoch_consensus.hpp>

#include <string>

namespace troupe::apps {

///@{
/// All but `decided`, as text. `parse_votes` throws error(bad_file) for
/// anything else.
/// @param name of what has the text, for the error
std::string to_text(const vote_memory& votes);
vote_memory parse_votes(const std::string& text, const std::string& name);
///@}

/// True if a text can be a name in an epoch: of a host, of a folder, or an
/// address.
bool is_site_word(const std::string& text);
/// True if somebody can have asked with this ballot.
bool is_ballot(const ballot& by);

} // namespace troupe::apps
