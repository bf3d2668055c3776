package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// consume reads all partitions of a topic from the earliest offset, without a group.
func consume(ctx context.Context, s settings) (report, error) {
	client, err := newClient(ctx, s,
		kgo.ConsumeTopics(s.topic),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxBytes(50<<20),
		kgo.FetchMaxPartitionBytes(1<<20),
	)
	if err != nil {
		return nil, err
	}
	records, bytes := 0, int64(0)
	began := time.Now()
	for records < s.records {
		fetches := client.PollFetches(ctx)
		for _, failure := range fetches.Errors() {
			return nil, fmt.Errorf("after %d of %d records: %w", records, s.records, failure.Err)
		}
		fetches.EachPartition(func(partition kgo.FetchTopicPartition) {
			records += len(partition.Records)
			for _, record := range partition.Records {
				bytes += int64(len(record.Value))
			}
		})
	}
	outcome := throughput(records, bytes, time.Since(began))
	go client.Close() // Close waits for the outstanding fetch
	return outcome, nil
}
