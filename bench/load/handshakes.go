package main

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const handshakers = 8

// handshakes opens TLS connections, each with a full handshake and an ApiVersions request, and closes them: as many as possible,
// or `rate` in a second.
func handshakes(ctx context.Context, s settings) (report, error) {
	config, err := tlsConfig(s.ca)
	if err != nil {
		return nil, err
	}
	request := kmsg.NewPtrApiVersionsRequest()
	request.Version = 3
	request.ClientSoftwareName = "odradek-bench"
	request.ClientSoftwareVersion = "1"
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, request, 1)
	began := time.Now()
	end := began.Add(s.duration())
	var tickets atomic.Int64
	var done atomic.Int64
	var failure atomic.Value
	var group sync.WaitGroup
	for range handshakers {
		group.Go(func() {
			for failure.Load() == nil && ctx.Err() == nil {
				due := began
				if number := tickets.Add(1); s.rate > 0 {
					due = began.Add(time.Duration(number) * time.Second / time.Duration(s.rate))
				}
				if due.After(end) || time.Now().After(end) {
					return
				}
				time.Sleep(time.Until(due))
				if err := shakeHands(ctx, s.brokers, config, frame); err != nil {
					failure.Store(err)
					return
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	if err, failed := failure.Load().(error); failed {
		return nil, err
	}
	seconds := time.Since(began).Seconds()
	return report{"handshakes": done.Load(), "seconds": seconds, "handshakes_per_s": float64(done.Load()) / seconds}, nil
}

func shakeHands(ctx context.Context, address string, config *tls.Config, frame []byte) error {
	dialer := tls.Dialer{NetDialer: &net.Dialer{}, Config: config}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	return exchange(connection, frame)
}
