package embedded

import "testing"

func TestRoom(t *testing.T) {
	for _, c := range []struct {
		most int64
		used uint64
		want string
	}{
		{leastRoom, 0, ""},
		{leastRoom + 100, 100, ""},
		{1000, 0, "embedded: JetStream directory d has no room: the server may write 1000 bytes there, three quarters of the free space, and needs 16777216: free some, or give a directory on another disk"},
		{leastRoom, leastRoom + 1, "embedded: JetStream directory d has no room: the server may write 0 bytes there, three quarters of the free space, and needs 16777216: free some, or give a directory on another disk"},
	} {
		got := ""
		if err := room("d", c.most, c.used); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%d of %d: %q\nwant %q", c.used, c.most, got, c.want)
		}
	}
}

// TestFull: JetStream that takes no more messages for want of room is told, and no other fault of it.
func TestFull(t *testing.T) {
	var told []string
	opts := Options{JetStream: "dir", OnExhausted: func(err error) { told = append(told, err.Error()) }}
	l := newLogger(&opts)
	l.Errorf("JetStream failed to store a message on stream %q", "S")
	l.Errorf("JetStream out of %s resources, will be DISABLED", "File")
	l.Errorf("JetStream %s resource limits exceeded for server", "file")
	want := "embedded: JetStream of the NATS server in this process takes no more messages, as dir has no room left: free some, and start again: "
	if len(told) != 2 || told[0] != want+"JetStream out of File resources, will be DISABLED" || told[1] != want+"JetStream file resource limits exceeded for server" {
		t.Errorf("%q\nwant %q and the lines", told, want)
	}
	opts.OnExhausted = nil
	newLogger(&opts).full(want) // Nobody is told.
}
