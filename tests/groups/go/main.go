// A group member that uses franz-go; tests/groups/members documents its settings and its reports.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	pollTime   = 100 * time.Millisecond
	commitTime = 20 * time.Second
)

type object = map[string]any

type settings struct {
	Servers       string   `json:"servers"`
	Name          string   `json:"name"`
	Topics        []string `json:"topics"`
	Group         string   `json:"group"`
	Protocol      string   `json:"protocol"`
	Assignor      string   `json:"assignor"`
	SessionMs     int      `json:"session_ms"`
	HeartbeatMs   int      `json:"heartbeat_ms"`
	Batch         int      `json:"batch"`
	CommitPauseMs int      `json:"commit_pause_ms"`
}

// In the newer protocol the balancer's name stands for the broker's assignor: sticky is what uniform is called here.
var balancers = map[string]kgo.GroupBalancer{
	"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(), "sticky": kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(), "uniform": kgo.StickyBalancer(),
}

var reporting sync.Mutex // callbacks come from goroutines of the client's

func report(event string, details object) {
	details["event"] = event
	line, err := json.Marshal(details)
	if err != nil {
		panic(err)
	}
	reporting.Lock()
	defer reporting.Unlock()
	fmt.Println(string(line))
}

func reportPartitions(event string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
		reported := [][]any{}
		for topic, partitions := range topics {
			for _, partition := range partitions {
				reported = append(reported, []any{topic, partition})
			}
		}
		report(event, object{"partitions": reported})
	}
}

func (s settings) options() []kgo.Opt {
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(s.Servers, ",")...), kgo.ClientID(s.Name), kgo.ConsumerGroup(s.Group), kgo.ConsumeTopics(s.Topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.Balancers(balancers[s.Assignor]), kgo.RetryBackoffFn(backoff),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil)),
		kgo.OnPartitionsAssigned(reportPartitions("assigned")), kgo.OnPartitionsRevoked(reportPartitions("revoked")),
		kgo.OnPartitionsLost(reportPartitions("lost")),
	}
	if s.Protocol == "consumer" {
		return append(options, kgo.ServerSideBalancer())
	}
	session, heartbeat := time.Duration(s.SessionMs)*time.Millisecond, time.Duration(s.HeartbeatMs)*time.Millisecond
	return append(options, kgo.SessionTimeout(session), kgo.HeartbeatInterval(heartbeat))
}

// backoff grows to a second, as the Java client's does. The default grows to five, and after a broker's restart a request
// may meet several connections that are gone before it meets the broker.
func backoff(failures int) time.Duration {
	return min(time.Second, 100*time.Millisecond<<min(failures, 10))
}

// process reports a batch, which is all the processing there is.
func process(records []*kgo.Record) {
	runs := [][]any{}
	var first, last *kgo.Record
	end := func() {
		if first != nil {
			runs = append(runs, []any{first.Topic, first.Partition, first.Offset, last.Offset + 1})
		}
	}
	for _, each := range records {
		if string(each.Value) != strconv.FormatInt(each.Offset, 10) {
			panic(fmt.Sprintf("%q at offset %d of %s-%d", each.Value, each.Offset, each.Topic, each.Partition))
		}
		if first == nil || each.Topic != last.Topic || each.Partition != last.Partition || each.Offset != last.Offset+1 {
			end()
			first = each
		}
		last = each
	}
	end()
	report("processed", object{"runs": runs})
}

func commit(client *kgo.Client, records []*kgo.Record) {
	ctx, cancel := context.WithTimeout(context.Background(), commitTime)
	defer cancel()
	if err := client.CommitRecords(ctx, records...); err != nil {
		report("refused", object{"error": err.Error()})
		return
	}
	ends := map[string]map[int32]int64{}
	for _, each := range records {
		if ends[each.Topic] == nil {
			ends[each.Topic] = map[int32]int64{}
		}
		ends[each.Topic][each.Partition] = each.Offset + 1
	}
	offsets := [][]any{}
	for topic, partitions := range ends {
		for partition, offset := range partitions {
			offsets = append(offsets, []any{topic, partition, offset})
		}
	}
	report("committed", object{"offsets": offsets})
}

func main() {
	var s settings
	if err := json.Unmarshal([]byte(os.Args[1]), &s); err != nil {
		panic(err)
	}
	leave, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() { // nobody holds our input any more
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	report("started", object{})
	client, err := kgo.NewClient(s.options()...)
	if err != nil {
		panic(err)
	}
	for leave.Err() == nil {
		ctx, cancel := context.WithTimeout(leave, pollTime)
		records := client.PollRecords(ctx, s.Batch).Records()
		cancel()
		if len(records) > 0 {
			process(records)
			time.Sleep(time.Duration(s.CommitPauseMs) * time.Millisecond)
			commit(client, records)
		}
		client.AllowRebalance()
	}
	client.CloseAllowingRebalance()
	report("left", object{})
}
