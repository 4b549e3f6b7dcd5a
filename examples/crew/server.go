package crew

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strconv"
)

// serveNATS runs the server and the synchronizer until the first process is gone. It prints its address.
func serveNATS(ctx context.Context, p *Program, f *flags) error {
	port, err := strconv.Atoi(f.url)
	if err != nil {
		return fmt.Errorf("-url %s: give the port of the server", f.url)
	}
	address, stop, err := p.start(ctx, f, port)
	if err != nil {
		return err
	}
	fmt.Println(address)
	_, _ = io.Copy(io.Discard, os.Stdin) // The first process holds the other end.
	return stop()
}

// serverProcess is the server and the synchronizer as a process of its own.
type serverProcess struct {
	crew    *Crew
	dir     string
	address string
	cmd     *exec.Cmd
	input   io.Closer
}

// start starts it on a port, and returns its address.
func (s *serverProcess) start(port string) (string, error) {
	cmd, input, output, err := startSelf("-part", partServer, "-url", port, "-dir", s.dir)
	if err != nil {
		return "", err
	}
	s.cmd, s.input = cmd, input
	lines := bufio.NewScanner(output)
	if !lines.Scan() {
		return "", errors.New("the process of the server has ended before it had an address")
	}
	s.address = lines.Text()
	return s.address, nil
}

// again kills it, and starts it again on the same port.
func (s *serverProcess) again() error {
	u, err := url.Parse(s.address)
	if err != nil {
		return err
	}
	_ = s.cmd.Process.Kill() // It may have ended.
	_ = s.cmd.Wait()
	_, err = s.start(u.Port())
	return err
}

func (s *serverProcess) end() {
	_ = s.input.Close()
	_ = s.cmd.Wait()
}
