"""DescribeLogDirs, API 35: versions 1 to 5."""

from odradek.protocol.schema import Request, Response, Struct, array, boolean, int16, int32, int64, string, topic_name


class DescribableLogDirTopic(Struct):
    topic: str = topic_name()
    partitions: list[int] = array(int32())


class DescribeLogDirsRequest(Request, api_key=35, versions=(1, 5), flexible=2):
    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable="0+")


class DescribeLogDirsPartition(Struct):
    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64()
    is_future_key: bool = boolean()


class DescribeLogDirsTopic(Struct):
    name: str = topic_name()
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


class DescribeLogDirsResult(Struct):
    error_code: int = int16()
    log_dir: str = string()
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = int64(versions="4+", default=-1)
    usable_bytes: int = int64(versions="4+", default=-1)
    is_cordoned: bool = boolean(versions="5+")


class DescribeLogDirsResponse(Response, api_key=35, versions=(1, 5), flexible=2):
    throttle_time_ms: int = int32()
    error_code: int = int16(versions="3+")
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)
