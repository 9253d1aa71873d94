"""The names of the notes in the store: small facts about this machine that several processes share."""

SPEEDS = "step speeds"  # the speeds that workers measured: model -> seconds per replay with 1 and with 8 pictures
SLOTS = "slots"  # the largest number of runs that are computed at a time, here or on a cluster
DEVICE = "device"  # the kind of device of the workers: cpu, cuda, mps
SERVER = "server"  # when the web server was last alive, in seconds since 1970
RECORDED = "recorded"  # the id of the run that a newcomer sees first
RECORDINGS = "recordings"  # the recorded runs in the store: id -> digest of the recording
LOG = "log"  # since when the write-ahead log holds deleted data, because a reader kept it from being emptied
CLOCK = "clock"  # when the store was last swept, so that a jump of the clock is noticed
CLUSTER = "cluster"  # the address of the Ray cluster with the workers; empty: this machine
CLUSTER_NAMESPACE = "cluster namespace"  # the name space of this store's workers on the cluster
