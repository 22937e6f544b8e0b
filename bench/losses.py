"""Which losses must agree in bench/compare, and how closely.

All sides begin with the same values and take the same batches, so their first
losses differ only by rounding. Rounding differences grow from step to step:
later losses are shown, but not compared. docs/performance.md tells how the
limits were chosen.
"""
# Largest relative differences from the reference, step by step.
PLAIN = (1e-5,) * 5
BATCH_NORM = {"resnet18": (2e-5, 1e-4, 1e-3), "resnet50": (2e-5, 5e-2, 5e-2),
              "resnext50": (2e-5, 5e-2, 5e-2)}
BF16 = (2e-2,)  # bfloat16 has eight significant bits

# Sides that train to other losses, which is their own fault.
WRONG = {(net, "paddle ParallelExecutor reduce"):
         "Paddle 2.6.2 computes wrong gradients with reduce on several places"
         for net in ("mlp", "lenet", "gpt")}


def limits(net, in_bf16=False):
    return BF16 if in_bf16 else BATCH_NORM.get(net, PLAIN)


def has_batch_norm(net):
    return net in BATCH_NORM


def relative_differences(losses, others):
    return [abs(a - b) / abs(a) for a, b in zip(losses, others)]


class Agreement:
    """How well a side's losses agree with those of its reference."""

    def __init__(self, allowed, reference, losses):
        """`reference` and `losses` have at least as many steps as `allowed`."""
        differences = relative_differences(reference, losses)
        self.shares = [difference / limit
                       for difference, limit in zip(differences, allowed)]
        self.allowed, self.reference, self.losses = allowed, reference, losses

    def first_wrong(self):
        """The first step, from 0, that differs by too much; None without."""
        return next((step for step, share in enumerate(self.shares)
                     if not share <= 1), None)  # NaN is not

    def summary(self, reference_name):
        return {"with": reference_name, "steps": len(self.allowed),
                "share": max(self.shares)}

    def complaint(self, side, reference_name):
        """One line for people; empty if all is well."""
        step = self.first_wrong()
        if step is None:
            return ""
        return (f"{side}: loss {self.losses[step]:.9g} at step {step + 1}, but "
                f"{self.reference[step]:.9g} with {reference_name}; the "
                f"relative difference may be {self.allowed[step]:.0e}")
