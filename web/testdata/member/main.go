// Command member runs a NATS server and members of the group workers for the tests in a browser. It prints the URL of
// the server. Each line of its stdin is an object: name, host and state set the state of a member, which joins first
// if it is new; leave closes it. A line with rate sets new states of members w0, w1 and so on, this many a second,
// until the next line arrives; the other fields of that line do not count. The command answers each line with "ok".
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

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
	Rate       int // states a second
	Members    int // that set them in turn
	State      state
}

func main() {
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		log.Fatal("member: ", err)
	}
	fmt.Println(server.URL())
	members := map[string]*agent.Member{}
	endLoad := func() {}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		endLoad()
		if endLoad, err = apply(members, server.URL(), in.Bytes()); err != nil {
			log.Fatal("member: ", err)
		}
		fmt.Println("ok")
	}
	endLoad()
	for _, m := range members {
		m.Close() //nolint:errcheck,gosec // The process ends.
	}
	server.Close()
}

// apply carries out one line. The function that it returns ends what the line has begun.
func apply(members map[string]*agent.Member, url string, text []byte) (end func(), err error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, err
	}
	end = func() {}
	if l.Rate > 0 {
		return startLoad(members, url, &l)
	}
	m := members[l.Name]
	if l.Leave {
		delete(members, l.Name)
		return end, m.Close()
	}
	if m, err = join(members, url, l.Name, l.Host); err != nil {
		return nil, err
	}
	return end, m.Set(l.State)
}

// join returns the member of that name, which joins first if it is new.
func join(members map[string]*agent.Member, url, name, host string) (*agent.Member, error) {
	if m := members[name]; m != nil {
		return m, nil
	}
	m, err := agent.Join(context.Background(), url, agent.Config{Group: "workers", Name: name, Host: host, State: state{}})
	if err == nil {
		members[name] = m
	}
	return m, err
}

// startLoad has members set states in turn, until end is called.
func startLoad(members map[string]*agent.Member, url string, l *line) (end func(), err error) {
	list := make([]*agent.Member, l.Members)
	for i := range list {
		if list[i], err = join(members, url, fmt.Sprint("w", i), "host"); err != nil {
			return nil, err
		}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		pause := time.NewTicker(time.Millisecond)
		defer pause.Stop()
		began := time.Now()
		for n := 0; ; {
			for due := int(time.Since(began).Seconds() * float64(l.Rate)); n < due; n++ {
				s := state{Phase: []string{"idle", "search"}[n/l.Rate%2], Load: float64(n) / float64(l.Rate), Note: "load"}
				if err := list[n%len(list)].Set(s); err != nil {
					log.Fatal("member: ", err)
				}
			}
			select {
			case <-pause.C:
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }, nil
}
