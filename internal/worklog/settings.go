package worklog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Settings say what the stream of a space has to be. Two openers of one space have the same.
type Settings struct {
	Stream   string // The name of the stream, also the first token of its subjects.
	Replicas int    // How many servers have the log, 1 to 5.
	MaxBytes int64  // What the log may have; at it messages are refused. -1 is no limit.
}

// streamConfig is the log: limits retention, as a work queue would forget what was acknowledged; and the newest message is
// refused at the limit, as the oldest may be about a task that is open.
func (s *Settings) streamConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: s.Stream, Subjects: []string{s.Stream + ".>"}, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew,
		Storage: jetstream.FileStorage, Replicas: s.Replicas, MaxBytes: s.MaxBytes, MaxMsgSize: -1,
		MaxMsgs: -1, MaxMsgsPerSubject: -1, Duplicates: 2 * time.Minute,
	}
}

// difference is a setting that is another one on the server.
type difference struct{ name, have, want string }

func differ(list []difference) (different []string) {
	for _, d := range list {
		if d.have != d.want {
			different = append(different, fmt.Sprintf("%s is %s and not %s", d.name, cmp.Or(d.have, "empty"), d.want))
		}
	}
	return different
}

// streamDifferences names each setting of a stream that is not the wanted one. Settings that change nothing for
// a log, such as its description and its placement, are the operator's.
func streamDifferences(have, want *jetstream.StreamConfig) []string {
	return differ([]difference{
		{"subjects", strings.Join(have.Subjects, " "), strings.Join(want.Subjects, " ")},
		{"retention", have.Retention.String(), want.Retention.String()},
		{"discard", have.Discard.String(), want.Discard.String()},
		{"storage", have.Storage.String(), want.Storage.String()},
		{"replicas", strconv.Itoa(have.Replicas), strconv.Itoa(want.Replicas)},
		{"max_bytes", strconv.FormatInt(have.MaxBytes, 10), strconv.FormatInt(want.MaxBytes, 10)},
		{"max_msg_size", strconv.Itoa(int(have.MaxMsgSize)), strconv.Itoa(int(want.MaxMsgSize))},
		{"max_msgs", strconv.FormatInt(have.MaxMsgs, 10), strconv.FormatInt(want.MaxMsgs, 10)},
		{"max_msgs_per_subject", strconv.FormatInt(have.MaxMsgsPerSubject, 10), strconv.FormatInt(want.MaxMsgsPerSubject, 10)},
		{"max_age", have.MaxAge.String(), want.MaxAge.String()},
		{"duplicate_window", have.Duplicates.String(), want.Duplicates.String()},
		{"no_ack", strconv.FormatBool(have.NoAck), strconv.FormatBool(want.NoAck)},
		{"sealed", strconv.FormatBool(have.Sealed), strconv.FormatBool(want.Sealed)},
		{"deny_purge", strconv.FormatBool(have.DenyPurge), strconv.FormatBool(want.DenyPurge)},
	})
}

// least is the first release whose leader refuses a record while another one on the same subject is on its way
// through the replicas, and says so if it cannot know yet.
var least = []int{2, 11, 0}

// checkVersion refuses the version of a server below the least one. A version that it cannot read is of a build of the user.
func checkVersion(version string) error {
	number, _, _ := strings.Cut(version, "-")
	var have []int
	for part := range strings.SplitSeq(number, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		have = append(have, n)
	}
	if slices.Compare(have, least) < 0 {
		return fmt.Errorf("the NATS server is version %s, and records need 2.11.0 or a later one: upgrade the server", version)
	}
	return nil
}
