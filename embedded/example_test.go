package embedded_test

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/embedded"
)

func Example() {
	srv, err := embedded.Start(embedded.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	server, options, err := connect.To(srv.URL(), nil) // The options have the key of the server.
	if err != nil {
		fmt.Println(err)
		return
	}
	nc, err := nats.Connect(server.URL, options...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer nc.Close()

	_, err = nc.Subscribe("greet", func(m *nats.Msg) { _ = m.Respond([]byte("hello, " + string(m.Data))) })
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := nc.Request("greet", []byte("world"), 5*time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(answer.Data))
	// Output: hello, world
}
