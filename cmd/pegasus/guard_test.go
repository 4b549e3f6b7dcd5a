package main

import (
	"bufio"
	"crypto/sha256"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const pageKey = "3f9c1be2a7d84f60b1c2"

// answered sends a request as it stands and returns the answer.
func answered(t *testing.T, address, request string) (code int, header http.Header, body string) {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, strings.ReplaceAll(request, "\n", "\r\n")+"Connection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(raw)
}

// TestHostOfPages attacks the check of Host: only an IP address, localhost and the names of
// --http-host are answered, whatever else the request says.
func TestHostOfPages(t *testing.T) {
	p := launch(t, "run", goodConfig, "--http", "127.0.0.1:0", "--http-host", "metrics.example,Other.example")
	p.url()
	address := strings.TrimPrefix(p.operators(), "http://")
	for host, want := range map[string]int{
		address: 200, "127.0.0.1": 200, "localhost": 200, "LOCALHOST:80": 200, "[::1]": 200, "[::1]:9464": 200, "10.1.2.3:1": 200,
		"metrics.example": 200, "METRICS.example:9464": 200, "other.EXAMPLE": 200,

		"evil.example": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example": 403, "evil-localhost": 403, "localhost.": 403,
		"xmetrics.example": 403, "metrics.example.": 403, "metrics.example.evil.example": 403, "a.metrics.example": 403, "metrics,example": 403,
		"metrics.example:evil.example": 400, "127.0.0.1:evil.example": 400, "127.0.0.1:99999": 403, "127.0.0.1:": 403,
		"127.1": 403, "0x7f000001": 403, "2130706433": 403, "127.0.0.01": 403, "[127.0.0.1]": 403, "::1": 403, "[::1": 400,
		"[::1%25lo]": 403, "[fe80::1%25eth0]:9464": 403, "[fe80::1%evil.example]": 400, "user@127.0.0.1": 403, "127.0.0.1/@evil.example": 400,
		"127.0.0.1, evil.example": 400, "": 403,
	} {
		code, _, body := answered(t, address, "GET /metrics HTTP/1.1\nHost: "+host+"\n")
		// The server refuses a Host that is none before it comes to the guard; that may change with its release.
		if good := code == http.StatusOK; good != (want == http.StatusOK) || !good && code != http.StatusForbidden && code != http.StatusBadRequest {
			t.Errorf("Host %q is answered with %d, want %d: %s", host, code, want, body)
		}
		if code != http.StatusOK && strings.Contains(body, "pegasus_") {
			t.Errorf("Host %q gets metrics", host)
		}
	}
	for request, want := range map[string]int{
		"GET http://evil.example/metrics HTTP/1.1\nHost: 127.0.0.1\n":                               403,
		"GET http://127.0.0.1@evil.example/metrics HTTP/1.1\nHost: 127.0.0.1\n":                     403,
		"GET http://127.0.0.1/metrics HTTP/1.1\nHost: 127.0.0.1\n":                                  200,
		"GET /metrics HTTP/1.1\nHost: evil.example\nX-Forwarded-Host: 127.0.0.1\n":                  403,
		"GET /metrics HTTP/1.1\nHost: evil.example\nForwarded: host=localhost\nX-Host: localhost\n": 403,
		"GET /metrics HTTP/1.1\nHost: evil.example\nHost: 127.0.0.1\n":                              400,
		"GET /livez HTTP/1.1\nHost: 127.0.0.1\nX-Forwarded-Host: evil.example\n":                    200,
		"GET /metrics HTTP/1.0\n": 403,
		"GET /metrics HTTP/1.1\nHost: evil.example\nOrigin: http://127.0.0.1\nReferer: http://127.0.0.1\n": 403,
		"POST /metrics HTTP/1.1\nHost: evil.example\nContent-Length: 0\n":                                  403,
		"GET /nothing HTTP/1.1\nHost: evil.example\n":                                                      403,
	} {
		if code, _, body := answered(t, address, request); code != want {
			t.Errorf("%q is answered with %d, want %d: %s", request, code, want, body)
		}
	}
	const text = `Host "evil.example" is refused: ask for the IP address or localhost, or start the run with --http-host NAME` + "\n"
	code, header, body := answered(t, address, "GET /readyz HTTP/1.1\nHost: evil.example\n")
	if code != http.StatusForbidden || body != text || header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(header.Get("Content-Type"), "text/plain") {
		t.Errorf("%d, %v, %q", code, header, body)
	}
	p.stop()
}

// TestKeyOfPages wants every page to need the key where there is one.
func TestKeyOfPages(t *testing.T) {
	file := writeFile(t, t.TempDir(), "key", pageKey+"\nmore\n")
	p := launch(t, "run", goodConfig, "--http", "0.0.0.0:0", "--http-key-file", file)
	p.url()
	_, port, err := net.SplitHostPort(p.operatorsAt())
	if err != nil {
		t.Fatal(err)
	}
	address := "127.0.0.1:" + port
	for _, page := range []string{"/metrics", "/livez", "/readyz", "/nothing"} {
		ok := map[string]int{"/metrics": 200, "/livez": 200, "/readyz": 503, "/nothing": 404}[page]
		for header, want := range map[string]int{
			"Authorization: Bearer " + pageKey: ok, "authorization: bearer " + pageKey: ok,
			"": 401, "Authorization: " + pageKey: 401, "Authorization: Bearer": 401, "Authorization: Bearer " + pageKey + "x": 401,
			"Authorization: Bearer " + pageKey[1:]: 401, "Authorization: Bearer " + strings.ToUpper(pageKey): 401, "Authorization: Basic " + pageKey: 401,
			"Authorization: Bearer  " + pageKey: 401, "X-Authorization: Bearer " + pageKey: 401, "Cookie: key=" + pageKey: 401, "Proxy-Authorization: Bearer " + pageKey: 401,
			"Authorization: Bearer x\nAuthorization: Bearer " + pageKey: 401, "Authorization: Bearer x, Bearer " + pageKey: 401,
		} {
			if header != "" {
				header += "\n"
			}
			if code, _, body := answered(t, address, "GET "+page+" HTTP/1.1\nHost: 127.0.0.1\n"+header); code != want {
				t.Errorf("%s with %q is answered with %d, want %d: %s", page, header, code, want, body)
			}
		}
		if code, _, _ := answered(t, address, "GET "+page+"?key="+pageKey+" HTTP/1.1\nHost: 127.0.0.1\n"); code != http.StatusUnauthorized {
			t.Errorf("the key in the URL of %s is answered with %d", page, code)
		}
	}
	code, header, body := answered(t, address, "GET /metrics HTTP/1.1\nHost: 127.0.0.1\n")
	if code != http.StatusUnauthorized || header.Get("WWW-Authenticate") != "Bearer" || body != "the key is missing or wrong: send the header Authorization: Bearer KEY with the key of --http-key-file\n" {
		t.Errorf("%d, %v, %q", code, header, body)
	}
	if code, _, _ := answered(t, address, "GET /metrics HTTP/1.1\nHost: evil.example\nAuthorization: Bearer "+pageKey+"\n"); code != http.StatusForbidden {
		t.Errorf("the key with another Host is answered with %d", code)
	}
	if code, stdout, stderr := execute(t, "health", "--live", "--http", address, "--http-key-file", file); code != exitOK || stderr != "" || !strings.Contains(stdout, "running") {
		t.Errorf("health with the key: exit %d, %q, %q", code, stdout, stderr)
	}
	want := "pegasus: health: " + address + " refuses the key, or that there is none: give --http-key-file FILE as the run has it\n"
	if code, stdout, stderr := execute(t, "health", "--live", "--http", address); code != exitFailure || stdout != "" || stderr != want {
		t.Errorf("health without the key: exit %d, %q, %q", code, stdout, stderr)
	}
	p.stop()
}

// operatorsAt is where a run that listens anywhere serves metrics and health.
func (p *process) operatorsAt() string {
	p.t.Helper()
	_, rest, _ := strings.Cut(p.line("Metrics are at http://"), "Metrics are at http://")
	address, _, _ := strings.Cut(rest, "/metrics")
	return address
}

// TestPageFlags wants each mistake to be refused before anything starts.
func TestPageFlags(t *testing.T) {
	dir := t.TempDir()
	short, spaced, empty := writeFile(t, dir, "short", "abc\n"+pageKey), writeFile(t, dir, "spaced", "with a space in the middle\n"), writeFile(t, dir, "empty", "")
	for args, want := range map[string]string{
		"--http 0.0.0.0:0":                                  "--http 0.0.0.0:0: other machines can reach it, so it needs --http-key-file FILE; or serve on 127.0.0.1",
		"--http [::]:0":                                     "--http [::]:0: other machines can reach it, so it needs --http-key-file FILE; or serve on 127.0.0.1",
		"--http host.example:0":                             "--http host.example:0: other machines can reach it, so it needs --http-key-file FILE; or serve on 127.0.0.1",
		"--http-host a.example":                             "--http-key-file and --http-host are for the pages of --http: give --http 127.0.0.1:9464, or leave them out",
		"--http-key-file " + short:                          "--http-key-file and --http-host are for the pages of --http: give --http 127.0.0.1:9464, or leave them out",
		"--http 127.0.0.1:0 --http-host a.example:1":        `--http-host "a.example:1": give a host name without a port, such as metrics.example`,
		"--http 127.0.0.1:0 --http-host *":                  `--http-host "*": give a host name without a port, such as metrics.example`,
		"--http 0.0.0.0:0 --http-key-file " + short:         "--http-key-file " + short + ": the key in its first line has 3 bytes, and needs at least 16: write the output of openssl rand -hex 32",
		"--http 0.0.0.0:0 --http-key-file " + empty:         "--http-key-file " + empty + ": the key in its first line has 0 bytes, and needs at least 16: write the output of openssl rand -hex 32",
		"--http 0.0.0.0:0 --http-key-file " + spaced:        "--http-key-file " + spaced + ": the key has a character that an HTTP header cannot have: write the output of openssl rand -hex 32",
		"--http 0.0.0.0:0 --http-key-file " + dir + "/none": "--http-key-file: open " + dir + "/none: ",
	} {
		code, stdout, stderr := execute(t, append([]string{"run", goodConfig}, strings.Fields(args)...)...)
		if code == exitOK || stdout != "" || !strings.HasPrefix(stderr, "pegasus: "+want) {
			t.Errorf("%s: exit %d, %q, %q, want %q", args, code, stdout, stderr, want)
		}
	}
	g := &pageGuard{address: "localhost:1"}
	for address, open := range map[string]bool{"127.0.0.1": false, "::1": false, "10.0.0.1": true, "0.0.0.0": true, "::": true} {
		err := g.permitAddress(&net.TCPAddr{IP: net.ParseIP(address)})
		if open != (err != nil && err.Error() == "--http localhost:1: other machines can reach it, so it needs --http-key-file FILE; or serve on 127.0.0.1") {
			t.Errorf("%s without a key: %v", address, err)
		}
	}
	g.key = new(sha256.Sum256([]byte(pageKey)))
	if err := g.permitAddress(&net.TCPAddr{IP: net.IPv4zero}); err != nil {
		t.Error(err)
	}
}

// TestHealthOfAnotherName asks by a name that the run does not answer for.
func TestHealthOfAnotherName(t *testing.T) {
	guarded := httptest.NewServer((&pageGuard{}).guardHandler(http.NotFoundHandler()))
	defer guarded.Close()
	address := strings.TrimPrefix(guarded.URL, "http://")
	if code, _, stderr := execute(t, "health", "--http", address); code != exitFailure || !strings.Contains(stderr, "404") {
		t.Errorf("exit %d, %q", code, stderr)
	}
	named := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = "name.example" // As a client that was given a name sends it.
		(&pageGuard{}).guardHandler(http.NotFoundHandler()).ServeHTTP(w, r)
	}))
	defer named.Close()
	address = strings.TrimPrefix(named.URL, "http://")
	want := "pegasus: health: " + address + " does not answer for that host name: give its IP address, or start the run with --http-host\n"
	if code, stdout, stderr := execute(t, "health", "--http", address); code != exitFailure || stdout != "" || stderr != want {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
}
