package loopkey_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/gopegasus/pegasus/internal/loopkey"
)

// keys is a directory for the keys of this test, which exists already.
func keys(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	dir = filepath.Join(dir, "pegasus")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, port int, seed string) *loopkey.Note {
	t.Helper()
	n, err := loopkey.Write(port, []byte(seed))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestDir(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join("a", "b"))
	if file, err := loopkey.File(4222); err != nil || file != filepath.Join("a", "b", "pegasus", "key-4222.nk") {
		t.Error(file, err)
	}
	if runtime.GOOS != "linux" {
		t.Skip("other systems have other variables")
	}
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("XDG_CACHE_HOME", "/c")
	if file, err := loopkey.File(1); err != nil || file != "/c/pegasus/runs/key-1.nk" {
		t.Error(file, err)
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	want := "key file of port 1: set XDG_RUNTIME_DIR to a directory of this user: neither $XDG_CACHE_HOME nor $HOME are defined"
	if _, err := loopkey.File(1); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if _, err := loopkey.Write(1, nil); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "127.1.2.3": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "0.0.0.0": false, "::": false, "10.0.0.1": false, "localhost.example": false, "127.0.0.1.example": false,
	} {
		if got := loopkey.IsLoopback(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

// TestNotes: the newest of two servers has the file, and neither removes that of the other.
func TestNotes(t *testing.T) {
	dir := keys(t)
	file := filepath.Join(dir, "key-7.nk")
	is := func(want string) {
		t.Helper()
		if seed, err := loopkey.Read(file); err != nil || string(seed) != want || want == "" && seed != nil {
			t.Errorf("got %q, %v, want %q", seed, err, want)
		}
	}
	is("")
	first := write(t, 7, "first")
	is("first")
	second := write(t, 7, "second")
	is("second")
	first.Remove()
	first.Undo()
	is("second")
	second.Undo()
	is("first")
	write(t, 7, "third").Remove()
	is("")
	write(t, 7, "fourth").Undo()
	is("")
	first.Undo()
	is("")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// TestReadersSeeWholeKeys reads while keys are written.
func TestReadersSeeWholeKeys(t *testing.T) {
	file := filepath.Join(keys(t), "key-7.nk")
	write(t, 7, "0000")
	var reading sync.WaitGroup
	end := make(chan struct{})
	reading.Go(func() {
		for {
			if seed, err := loopkey.Read(file); err != nil || len(seed) != 4 {
				t.Errorf("%q, %v", seed, err)
				return
			}
			select {
			case <-end:
				return
			default:
			}
		}
	})
	for i := range 200 {
		write(t, 7, strconv.Itoa(1000+i))
	}
	close(end)
	reading.Wait()
}

// TestRefused: what other users could have written or read is not used.
func TestRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this system has no modes of files")
	}
	dir := keys(t)
	file := filepath.Join(dir, "key-7.nk")
	check := func(what string, do error, want string) {
		t.Helper()
		if do != nil {
			t.Fatal(do)
		}
		if seed, err := loopkey.Read(file); err == nil || err.Error() != want || seed != nil {
			t.Errorf("%s: got %q, %v\nwant %s", what, seed, err, want)
		}
	}
	write(t, 7, "seed")
	check("mode of the file", os.Chmod(file, 0o644), "key file "+file+": its mode is 0644, so other users can open it: remove it, and start the server again") //nolint:gosec // This is what is refused.
	check("mode of the group", os.Chmod(file, 0o640), "key file "+file+": its mode is 0640, so other users can open it: remove it, and start the server again")
	check("a directory", errors.Join(os.Remove(file), os.Mkdir(file, 0o700)), "key file "+file+": it is no regular file: remove it")
	target := filepath.Join(dir, "target")
	check("a link", errors.Join(os.Remove(file), os.WriteFile(target, []byte("seed"), 0o600), os.Symlink(target, file)), "key file "+file+": it is no regular file: remove it")
	write(t, 7, "seed") // It replaces the link, and not what that leads to.
	if text, err := os.ReadFile(target); err != nil || string(text) != "seed" {
		t.Errorf("%q, %v", text, err)
	}
	mode := "key directory " + dir + ": its mode is 0711, so other users can open it: run chmod 700 " + dir
	check("mode of the directory", os.Chmod(dir, 0o711), mode) //nolint:gosec // This is what is refused.
	if _, err := loopkey.Write(7, []byte("seed")); err == nil || err.Error() != mode {
		t.Errorf("Write: got %v\nwant %s", err, mode)
	}
	if os.Geteuid() != 0 {
		return // Only root can give files away.
	}
	check("owner of the file", errors.Join(os.Chmod(dir, 0o700), os.Chown(file, 65534, 65534)), "key file "+file+": another user owns it: remove it")
	write(t, 7, "own")
	if seed, err := loopkey.Read(file); err != nil || string(seed) != "own" {
		t.Errorf("%q, %v", seed, err)
	}
	owner := "key directory " + dir + ": another user owns it: remove it, or set XDG_RUNTIME_DIR to a directory of this user"
	check("owner of the directory", os.Chown(dir, 65534, 65534), owner)
	if _, err := loopkey.Write(7, []byte("seed")); err == nil || err.Error() != owner {
		t.Errorf("Write: got %v\nwant %s", err, owner)
	}
}

// TestNoDirectory: where a file is in the way nothing is read, and a server cannot write.
func TestNoDirectory(t *testing.T) {
	dir := t.TempDir()
	inTheWay := filepath.Join(dir, "file")
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", inTheWay)
	file, err := loopkey.File(7)
	if err != nil {
		t.Fatal(err)
	}
	if seed, err := loopkey.Read(file); seed != nil || err != nil {
		t.Errorf("%q, %v", seed, err)
	}
	want := "key directory " + filepath.Join(inTheWay, "pegasus") + ": set XDG_RUNTIME_DIR to a directory of this user: mkdir " + inTheWay + ": not a directory"
	if _, err := loopkey.Write(7, nil); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}
