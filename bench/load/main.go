// Command load is the benchmark's load generator: a franz-go client that runs one mode and prints one line of JSON.
//
//	load produce     -brokers HOST:PORT -topic TOPIC -records N -size BYTES [-batch BYTES] [-linger 5ms] [-keys N] [-acks 1]
//	load replay      -brokers HOST:PORT -topic TOPIC -records N -size BYTES -batch BYTES   (encoded requests, sent again and again)
//	load consume     -brokers HOST:PORT -topic TOPIC -records N
//	load latency     -brokers HOST:PORT -topic TOPIC -rate RECORDS_PER_SECOND -seconds N -size BYTES [-acks 1]
//	load commits     -brokers HOST:PORT -topic TOPIC -records N -groups N [-partitions N]   (N commits in all)
//	load transactions -brokers HOST:PORT -topic TOPIC -seconds N -in-transaction N -size BYTES   (one producer)
//	load transform   -brokers HOST:PORT -source TOPIC -topic TOPIC -seconds N -records N -in-transaction N   (one member of a group)
//	load open        -brokers HOST:PORT -topic TOPIC -seconds N -rate COMMITS_PER_SECOND -producers N -in-transaction N -partitions N -size BYTES
//	load groups      -brokers HOST:PORT -groups N -seconds N  (two members each, which only send heartbeats)
//	load offsets     -brokers HOST:PORT -groups N             (waits for the port, then fetches the committed offsets of each group)
//	load connections -brokers HOST:PORT -count N          (holds them until standard input closes)
//	load handshakes  -brokers HOST:PORT -ca FILE -seconds N [-rate HANDSHAKES_PER_SECOND]   (TLS connections that are closed at once)
//	load first       -brokers HOST:PORT -topic TOPIC      (waits for the port, then creates the topic and writes one record)
//
// With -ca, produce, consume and latency connect over TLS. It uses little CPU, because the generator shares the cores with the broker that is measured.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type settings struct {
	brokers       string
	topic         string
	acks          string
	records       int
	sizeBytes     int
	keys          int
	inTransaction int
	batchBytes    int
	codec         string
	linger        time.Duration
	rate          int
	seconds       int
	count         int
	groups        int
	partitions    int
	producers     int
	source        string
	ca            string
	giveUpAfter   time.Duration
}

func (s settings) duration() time.Duration { return time.Duration(s.seconds) * time.Second }

type report map[string]any

var modes = map[string]func(context.Context, settings) (report, error){
	"produce":      produce,
	"consume":      consume,
	"latency":      latency,
	"commits":      commits,
	"replay":       replay,
	"transactions": transactions,
	"transform":    transform,
	"open":         open,
	"groups":       groups,
	"offsets":      offsets,
	"connections":  connections,
	"handshakes":   handshakes,
	"first":        first,
}

func main() {
	// Less frequent garbage collection leaves more CPU time to the broker; the generator's memory is not measured.
	debug.SetGCPercent(400)
	mode, given := read(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, given.giveUpAfter)
	defer cancel()
	outcome, err := modes[mode](ctx, given)
	if err != nil {
		fmt.Fprintf(os.Stderr, "load %s: %v\n", mode, err)
		os.Exit(1)
	}
	outcome["mode"] = mode
	outcome["client_cpu_s"] = cpuSeconds()
	line(outcome)
	if mode == "connections" {
		waitForEndOfInput()
	}
}

func read(arguments []string) (string, settings) {
	if len(arguments) == 0 || modes[arguments[0]] == nil {
		fmt.Fprintln(os.Stderr, "usage: load produce|replay|consume|latency|commits|transactions|transform|open|groups|offsets|connections|handshakes|first [flags]")
		os.Exit(2)
	}
	var s settings
	flags := flag.NewFlagSet(arguments[0], flag.ExitOnError)
	flags.StringVar(&s.brokers, "brokers", "127.0.0.1:9092", "addresses of brokers, separated by commas")
	flags.StringVar(&s.topic, "topic", "bench", "topic to use")
	flags.StringVar(&s.acks, "acks", "all", "acknowledgements (produce, latency): all, with idempotence, or 1")
	flags.IntVar(&s.records, "records", 1_000_000, "how many records to write or read")
	flags.IntVar(&s.sizeBytes, "size", 100, "bytes in a record's value")
	flags.IntVar(&s.keys, "keys", 0, "different keys of 16 bytes, at random (produce); 0 for records without keys")
	flags.IntVar(&s.batchBytes, "batch", 1_000_000, "largest batch in bytes")
	flags.StringVar(&s.codec, "codec", "none", "compression of batches: lz4, of random words, or none (produce)")
	flags.DurationVar(&s.linger, "linger", 5*time.Millisecond, "how long a batch waits for more records")
	flags.IntVar(&s.rate, "rate", 10_000, "records per second (latency), commits per second (open)")
	flags.IntVar(&s.seconds, "seconds", 10, "seconds that count (latency, groups, transactions, transform, open)")
	flags.IntVar(&s.count, "count", 10_000, "connections to hold")
	flags.IntVar(&s.groups, "groups", 32, "consumer groups")
	flags.IntVar(&s.partitions, "partitions", 1, "partitions in a commit, or that open transactions write to")
	flags.IntVar(&s.producers, "producers", 1000, "producers with an open transaction")
	flags.IntVar(&s.inTransaction, "in-transaction", 100, "records in a transaction")
	flags.StringVar(&s.source, "source", "", "topic that is transformed")
	flags.StringVar(&s.ca, "ca", "", "file with the certificates that are trusted; connects over TLS")
	flags.DurationVar(&s.giveUpAfter, "give-up-after", 5*time.Minute, "deadline of the whole run")
	_ = flags.Parse(arguments[1:]) // ExitOnError: never returns an error
	return arguments[0], s
}

// newClient returns a client that has connected to the broker, so that connecting is not part of the measured time.
func newClient(ctx context.Context, s settings, more ...kgo.Opt) (*kgo.Client, error) {
	options := append([]kgo.Opt{kgo.SeedBrokers(strings.Split(s.brokers, ",")...)}, more...)
	if s.ca != "" {
		config, err := tlsConfig(s.ca)
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	if err := client.Ping(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// tlsConfig resumes no sessions: every connection has a full handshake.
func tlsConfig(path string) (*tls.Config, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("no certificate in %s", path)
	}
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}

func throughput(records int, bytes int64, took time.Duration) report {
	s := took.Seconds()
	return report{"records": records, "seconds": s, "records_per_s": float64(records) / s, "mb_per_s": float64(bytes) / s / 1e6}
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func line(outcome report) {
	text, err := json.Marshal(outcome)
	if err != nil {
		panic(err) // a map of numbers and strings always has a JSON form
	}
	fmt.Println(string(text))
}

func waitForEndOfInput() {
	buffer := make([]byte, 64)
	for {
		if _, err := os.Stdin.Read(buffer); err != nil {
			return
		}
	}
}
