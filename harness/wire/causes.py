"""Why the harness ended a process for its memory, as the forking parent tells it."""

# It had more than its own limit.
OVER_LIMIT = "host_memory"
# The machine ran out of memory, and it had most of what was free at first.
MOST_OF_IT = "most_memory"
# The machine ran out of memory, and it was only the largest of those that may be ended: others took the rest.
SHORTAGE = "machine_memory"
# As that, but as it ended more than half of what was missing came back: it held what no figure of a process counts.
GIVEN_BACK = "given_back"
