package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"regexp"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

var loginOption = regexp.MustCompile(`(username|password)="([^"]*)"`)

// securityOptions are those of every client: TLS and SCRAM as the file that TEST_CLIENT_PROPERTIES names asks for, which has the
// properties of a Java client with PEM stores. Without the variable clients connect in plain text.
func securityOptions() []kgo.Opt {
	path, given := os.LookupEnv("TEST_CLIENT_PROPERTIES")
	if !given {
		return nil
	}
	properties := map[string]string{}
	for _, line := range strings.Split(string(read(path)), "\n") {
		if name, value, found := strings.Cut(line, "="); found {
			properties[name] = value
		}
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(read(properties["ssl.truststore.location"])) {
		panic("no certificate in ssl.truststore.location")
	}
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if store := properties["ssl.keystore.location"]; store != "" {
		pair, err := tls.LoadX509KeyPair(store, store)
		if err != nil {
			panic(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	options := []kgo.Opt{kgo.DialTLSConfig(config)}
	if login := properties["sasl.jaas.config"]; login != "" {
		found := map[string]string{}
		for _, option := range loginOption.FindAllStringSubmatch(login, -1) {
			found[option[1]] = option[2]
		}
		auth := scram.Auth{User: found["username"], Pass: found["password"]}
		mechanism := auth.AsSha512Mechanism()
		if properties["sasl.mechanism"] == "SCRAM-SHA-256" {
			mechanism = auth.AsSha256Mechanism()
		}
		options = append(options, kgo.SASL(mechanism))
	}
	return options
}

func read(path string) []byte {
	content, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return content
}
