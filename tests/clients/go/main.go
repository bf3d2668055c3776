// Performs the steps of the client scenario with franz-go: a step per line on standard input, its answer per line on standard
// output, both JSON. The verbs are those of tests/clients/scenario.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const patience = 20 * time.Second

type object = map[string]any

type step struct {
	Verb      string    `json:"verb"`
	Arguments arguments `json:"arguments"`
}

// arguments has every argument of every verb; a step fills those of its own.
type arguments struct {
	Topic             string             `json:"topic"`
	Partition         int32              `json:"partition"`
	Partitions        int32              `json:"partitions"`
	ReplicationFactor int16              `json:"replication_factor"`
	Configs           map[string]*string `json:"configs"`
	ValidateOnly      bool               `json:"validate_only"`
	Count             int                `json:"count"`
	At                any                `json:"at"`
	Before            int64              `json:"before"`
	Resource          string             `json:"resource"`
	Keys              []string           `json:"keys"`
	Operations        [][]*string        `json:"operations"`
	Codec             string             `json:"codec"`
	Acks              int                `json:"acks"`
	Idempotent        bool               `json:"idempotent"`
	Records           []record           `json:"records"`
	Assignments       [][]any            `json:"assignments"`
	Reset             string             `json:"reset"`
	Isolation         string             `json:"isolation"`
	TransactionalID   string             `json:"transactional_id"`
	Commits           bool               `json:"commits"`
	Target            string             `json:"target"`
	Group             string             `json:"group"`
	Rounds            int                `json:"rounds"`
	Ends              [][2]int32         `json:"ends"`
	FetchBytes        int32              `json:"fetch_bytes"`
	QuietMs           int                `json:"quiet_ms"`
}

type driver struct {
	connection []kgo.Opt // the address of the cluster, and security
	admin      *kadm.Client
}

func main() {
	connection := append(securityOptions(), kgo.SeedBrokers(strings.Split(os.Args[1], ",")...))
	d := &driver{connection: connection}
	// A broker that has died stays the coordinator of a group for this client until its metadata is refreshed (5 minutes by default).
	client, err := d.newClient(kgo.MetadataMinAge(10*time.Millisecond), kgo.MetadataMaxAge(time.Second))
	if err != nil {
		panic(err)
	}
	defer client.Close()
	d.admin = kadm.NewClient(client)
	verbs := map[string]func(context.Context, arguments) (any, error){
		"cluster": d.cluster, "create_topic": d.createTopic, "delete_topic": d.deleteTopic, "list_topics": d.listTopics,
		"describe_topic": d.describeTopic, "create_partitions": d.createPartitions, "offset": d.offset,
		"describe_configs": d.describeConfigs, "alter_configs": d.alterConfigs, "replace_configs": d.replaceConfigs,
		"delete_records": d.deleteRecords, "produce": d.produce, "consume": d.consume, "consume_new": d.consumeNew,
		"produce_in_transaction": d.produceInTransaction, "copy": d.copy, "committed": d.committed, "fence": d.fence,
		"alternate": d.alternate, "read_to_ends": d.readToEnds,
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var s step
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			panic(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		answer, err := verbs[s.Verb](ctx, s.Arguments)
		cancel()
		if err != nil {
			answer = object{"error": errorName(err)}
		}
		if err := answers.Encode(answer); err != nil {
			panic(err)
		}
	}
}

func (d *driver) newClient(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(options, d.connection...)...)
}

func errorName(err error) string {
	var refusal *kerr.Error
	if errors.As(err, &refusal) {
		return refusal.Message
	}
	return err.Error()
}
