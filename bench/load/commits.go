package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const committers = 32

func groupName(number int) string { return fmt.Sprintf("bench-group-%d", number) }

// commits lets the requested number of groups, without members, commit offsets concurrently, each one commit at a time.
// There are at most 32 connections; more groups share them.
func commits(ctx context.Context, s settings) (report, error) {
	workers := min(committers, s.groups)
	wires := make([]*wire, workers)
	for i := range wires {
		var err error
		if wires[i], err = dial(ctx, s.brokers); err != nil {
			return nil, err
		}
		defer wires[i].connection.Close()
		for group := i; group < s.groups; group += workers {
			if err := settle(ctx, wires[i], s, groupName(group)); err != nil {
				return nil, err
			}
		}
	}
	delays := make([][]time.Duration, workers)
	failures := make([]error, workers)
	began := time.Now()
	var group sync.WaitGroup
	for i := range wires {
		group.Go(func() { delays[i], failures[i] = commitAll(ctx, wires[i], s, i, workers) })
	}
	group.Wait()
	took := time.Since(began)
	var all []time.Duration
	for i := range wires {
		if failures[i] != nil {
			return nil, failures[i]
		}
		all = append(all, delays[i]...)
	}
	outcome := percentiles(all)
	outcome["records"] = len(all)
	outcome["seconds"] = took.Seconds()
	outcome["commits_per_s"] = float64(len(all)) / took.Seconds()
	return outcome, nil
}

// settle finds the coordinator and commits once, before the measured time.
func settle(ctx context.Context, w *wire, s settings, group string) error {
	if err := w.findCoordinator(ctx, group); err != nil {
		return err
	}
	return patiently(ctx, func() error { return commit(w, s, group, 0) })
}

func commitAll(ctx context.Context, w *wire, s settings, first, step int) ([]time.Duration, error) {
	var mine []string
	for number := first; number < s.groups; number += step {
		mine = append(mine, groupName(number))
	}
	wanted := s.records / step
	if first < s.records%step {
		wanted++
	}
	delays := make([]time.Duration, 0, wanted)
	for offset := 1; len(delays) < wanted && ctx.Err() == nil; offset++ {
		for _, group := range mine[:min(len(mine), wanted-len(delays))] {
			began := time.Now()
			if err := commit(w, s, group, int64(offset)); err != nil {
				return nil, err
			}
			delays = append(delays, time.Since(began))
		}
	}
	return delays, ctx.Err()
}

// commit writes one offset for each of the first s.partitions partitions of the topic.
func commit(w *wire, s settings, group string, offset int64) error {
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic = s.topic
	for index := range s.partitions {
		partition := kmsg.NewOffsetCommitRequestTopicPartition()
		partition.Partition, partition.Offset = int32(index), offset
		topic.Partitions = append(topic.Partitions, partition)
	}
	request := kmsg.NewPtrOffsetCommitRequest()
	request.Group, request.Generation = group, -1
	request.Topics = append(request.Topics, topic)
	answer, err := w.ask(request, offsetCommitVersion)
	if err != nil {
		return err
	}
	for _, topic := range answer.(*kmsg.OffsetCommitResponse).Topics {
		for _, partition := range topic.Partitions {
			if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}

// offsets is started before the broker. It waits for the port, fetches the committed offsets of every group, and reports
// the wall-clock time of the last response.
func offsets(ctx context.Context, s settings) (report, error) {
	fmt.Println("waiting") // the caller may start the broker
	if err := waitForPort(ctx, s.brokers); err != nil {
		return nil, err
	}
	w, err := dial(ctx, s.brokers)
	if err != nil {
		return nil, err
	}
	defer w.connection.Close()
	fetched := 0
	for number := range s.groups {
		group := groupName(number)
		if err := w.findCoordinator(ctx, group); err != nil {
			return nil, err
		}
		err := patiently(ctx, func() error {
			count, err := fetchOffsets(w, group)
			fetched += count
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return report{"fetched_unix_ns": time.Now().UnixNano(), "offsets": fetched}, nil
}

func fetchOffsets(w *wire, group string) (int, error) {
	request := kmsg.NewPtrOffsetFetchRequest()
	request.Group, request.Topics = group, nil // all of them
	answer, err := w.ask(request, offsetFetchVersion)
	if err != nil {
		return 0, err
	}
	response := answer.(*kmsg.OffsetFetchResponse)
	count := 0
	for _, topic := range response.Topics {
		count += len(topic.Partitions)
	}
	return count, kerr.ErrorForCode(response.ErrorCode)
}
