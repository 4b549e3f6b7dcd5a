// Command member runs a NATS server and members of the group workers for the tests in a browser. It prints the URL of
// the server. Each line of its stdin is an object: name, host and state set the state of a member, which joins first
// if it is new; leave closes it. The command answers each line with "ok".
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/embedded"
)

type state struct {
	Phase string
	Load  float64
	Note  string
}

type line struct {
	Name, Host string
	Leave      bool
	State      state
}

func main() {
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		log.Fatal("member: ", err)
	}
	fmt.Println(server.URL())
	members := map[string]*agent.Member{}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if err := apply(members, server.URL(), in.Bytes()); err != nil {
			log.Fatal("member: ", err)
		}
		fmt.Println("ok")
	}
	for _, m := range members {
		m.Close() //nolint:errcheck,gosec // The process ends.
	}
	server.Close()
}

// apply carries out one line.
func apply(members map[string]*agent.Member, url string, text []byte) error {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return err
	}
	m := members[l.Name]
	if l.Leave {
		delete(members, l.Name)
		return m.Close()
	}
	if m == nil {
		var err error
		if m, err = agent.Join(context.Background(), url, agent.Config{Group: "workers", Name: l.Name, Host: l.Host, State: state{}}); err != nil {
			return err
		}
		members[l.Name] = m
	}
	return m.Set(l.State)
}
