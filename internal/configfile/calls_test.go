package configfile_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/configfile"
)

func withCall(call string) []byte {
	return []byte(strings.Replace(workFarm, "work: {}", "work:\n      calls:\n        f: {"+call+"}", 1))
}

// TestCallKeys: what the file says of calls arrives at the members.
func TestCallKeys(t *testing.T) {
	plans, err := configfile.Parse("t.yaml", withCall(`style: "async-demand(2:5)", replicas: [a, b], priority: "-len(arg)", traffic: incremental, batch: 16, retry: 7`))
	if err != nil {
		t.Fatal(err)
	}
	var told config.Work
	if err := json.Unmarshal(plans[0].WorkText, &told); err != nil {
		t.Fatal(err)
	}
	got, _ := told.Calls.Get("f")
	want := config.WorkCall{Style: "async-demand(2:5)", Replicas: []string{"a", "b"}, Priority: "-len(arg)", Traffic: "incremental", Batch: 16, Retry: 7}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	shown, err := configfile.Show("t.yaml", withCall(`traffic: bulk`))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"calls: {f: {traffic: bulk, style: async, batch: 256, retry: 3, service: false}}\n"} {
		if !strings.Contains(string(shown), text) {
			t.Errorf("no %q in\n%s", text, shown)
		}
	}
	if _, err := configfile.Parse("t.yaml", shown); err != nil {
		t.Error(err)
	}
}

// TestStyles reads styles of calls.
func TestStyles(t *testing.T) {
	type marks struct {
		sync, demand bool
		low, high    int
	}
	for style, want := range map[string]marks{
		"": {}, "async": {}, "sync": {sync: true}, "async-demand(2:5)": {demand: true, low: 2, high: 5}, "async-demand(*:5)": {demand: true, high: 5},
		"async-demand(3:*)": {demand: true, low: 3}, "async-demand( 1 : 1 )": {demand: true, low: 1, high: 1},
	} {
		var got marks
		var err error
		if got.sync, got.demand, got.low, got.high, err = config.ParseStyle(style); got != want || err != nil {
			t.Errorf("%q: %+v %v, want %+v", style, got, err, want)
		}
	}
}

// TestCallFaults: each fault names its place, and what to do.
func TestCallFaults(t *testing.T) {
	long := strings.Repeat("x", 129)
	for call, want := range map[string][]string{
		`style: asynch`:                                         {"t.yaml:8:20: ", `work.calls.f.style: "asynch" is no style of calls: use sync, async, or async-demand(L:U) with water marks, such as async-demand(2:5)`},
		`style: "async-demand(5:2)"`:                            {"t.yaml:8:20: ", `the lower water mark of "async-demand(5:2)" is above the upper one: write the smaller number first`},
		`style: "async-demand(*:*)"`:                            {`both water marks of "async-demand(*:*)" are open: give one of them a number, such as async-demand(*:5)`},
		`style: "async-demand(0:2)"`:                            {`"0" is no water mark: use 1 to 1024, or * for none`},
		`style: "async-demand(1:2000)"`:                         {`"2000" is no water mark`},
		`style: "async-demand(1)"`:                              {`is no style of calls`},
		`style: "async-demand(1:2"`:                             {`is no style of calls`},
		`ratio: "0:0", replicas: [a, b]`:                        {"t.yaml:8:20: ", `work.calls.f.ratio: the ratio "0:0" gives no server a call: give one of them a share above 0`},
		`ratio: "1:x", replicas: [a, b]`:                        {`"x" is no share of the ratio "1:x": use numbers of 0 to 1000 with colons between them, such as 1:2:3`},
		`ratio: "1:-2", replicas: [a, b]`:                       {`"-2" is no share of the ratio`},
		`ratio: "1:2:3", replicas: [a, b]`:                      {`the ratio "1:2:3" has 3 shares, and there are 2 replicas: list one replica for each share`},
		`ratio: "1:2"`:                                          {`the ratio "1:2" has 2 shares, and there are 0 replicas`},
		`replicas: []`:                                          {"t.yaml:8:23: ", `work.calls.f.replicas: the list of replicas is empty, so no member serves the call: name members, or leave replicas out`},
		`replicas: [a, b, a]`:                                   {"t.yaml:8:30: ", `the replica "a" is listed twice: give it a larger share in ratio instead`},
		`replicas: [` + long + `]`:                              {`the name of a member has 129 bytes: use 1 to 128`},
		`priority: loc - server.hed`:                            {"t.yaml:8:29: ", `work.calls.f.priority: `, `there is no server.hed`},
		`traffic: datagram`:                                     {`"datagram" is no kind of traffic: use intermittent, incremental or bulk`},
		`traffic: bulk, batch: 1025`:                            {`1025 calls in a batch: use 1 to 1024`},
		`traffic: bulk, batch: -1`:                              {`-1 calls in a batch`},
		`batch: 8`:                                              {`calls of intermittent traffic are sent at once, and never in batches: add traffic: incremental, or leave batch out`},
		`retry: 1001`:                                           {`1001 servers may be lost with a call: use 1 to 1000, or leave it out`},
		`style: "async-demand(1:2)", ratio: "1", replicas: [a]`: {`a ratio divides calls by numbers, and async-demand by what servers have done: use style: async, or leave ratio out`},
		`stile: sync`:                                           {`stile`, `did you mean "style"`},
	} {
		_, err := configfile.Parse("t.yaml", withCall(call))
		for _, text := range want {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v; want %s", call, err, text)
			}
		}
	}
	_, err := configfile.Parse("t.yaml", []byte(strings.Replace(workFarm, "work: {}", `work: {calls: {"": {}}}`, 1)))
	if err == nil || !strings.Contains(err.Error(), "work.calls: the name of a function is empty: use the name of the server in the program") {
		t.Error(err)
	}
	_, err = configfile.Parse("t.yaml", []byte(strings.Replace(workFarm, "work: {}", `work: {calls: {"a.b": {service: true}}}`, 1)))
	if err == nil || !strings.Contains(err.Error(), `work.calls.a.b.service: "a.b" cannot name a function of a service of NATS: give the server a name of letters, digits, _ and -`) {
		t.Error(err)
	}
}
