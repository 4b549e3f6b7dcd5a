package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/gopegasus/pegasus/internal/loopkey"
)

// leastKey is the least length of a key in bytes: a shorter one could be guessed.
const leastKey = 16

// pageFlags say where the pages for operators are, and who may read them.
type pageFlags struct {
	address, keyFile string
	names            []string
}

func (f *pageFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.address, "http", "", "serve metrics and health at `HOST:PORT`, such as "+operatorAddress+" (default none)")
	addKeyFile(flags, &f.keyFile, "answer only requests with the key in the first line of `FILE`; needed if other machines can reach --http")
	flags.StringSliceVar(&f.names, "http-host", nil, "also answer requests for this host `NAME`, beside IP addresses and localhost; several by commas")
}

func addKeyFile(flags *pflag.FlagSet, to *string, usage string) {
	flags.StringVar(to, "http-key-file", "", usage)
}

// hostName is what --http-host takes.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?$`)

// guard checks the flags and reads the key. It returns nil if no pages are served.
func (f *pageFlags) guard() (*pageGuard, error) {
	if f.address == "" {
		if f.keyFile != "" || len(f.names) > 0 {
			return nil, fmt.Errorf("--http-key-file and --http-host are for the pages of --http: give --http %s, or leave them out", operatorAddress)
		}
		return nil, nil
	}
	host, _, err := splitAddress("http", f.address, operatorAddress)
	if err != nil {
		return nil, err
	}
	for _, name := range f.names {
		if !hostName.MatchString(name) {
			return nil, fmt.Errorf("--http-host %q: give a host name without a port, such as metrics.example", name)
		}
	}
	g := &pageGuard{address: f.address, names: f.names}
	if f.keyFile == "" {
		if !loopkey.IsLoopback(host) {
			return nil, g.needsKey()
		}
		return g, nil
	}
	key, err := readKey(f.keyFile)
	if err != nil {
		return nil, fail(err)
	}
	g.key = new(sha256.Sum256([]byte(key)))
	return g, nil
}

// readKey reads the key of --http-key-file, the first line of the file.
func readKey(file string) (string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("--http-key-file: %w", err)
	}
	key, _, _ := strings.Cut(string(raw), "\n")
	key = strings.TrimSuffix(key, "\r")
	for _, b := range []byte(key) {
		if b <= ' ' || b >= 0x7f {
			return "", fmt.Errorf("--http-key-file %s: the key has a character that an HTTP header cannot have: write the output of openssl rand -hex 32", file)
		}
	}
	if len(key) < leastKey {
		return "", fmt.Errorf("--http-key-file %s: the key in its first line has %d bytes, and needs at least %d: write the output of openssl rand -hex 32", file, len(key), leastKey)
	}
	return key, nil
}

// pageGuard refuses requests before a page answers them.
type pageGuard struct {
	address string // of --http
	names   []string
	key     *[sha256.Size]byte // hash of the key; nil: none is needed
}

func (g *pageGuard) needsKey() error {
	return fmt.Errorf("--http %s: other machines can reach it, so it needs --http-key-file FILE; or serve on 127.0.0.1", g.address)
}

// permitAddress fails if other machines can reach the address and no key is needed there.
func (g *pageGuard) permitAddress(at net.Addr) error {
	if tcp, ok := at.(*net.TCPAddr); g.key == nil && (!ok || !tcp.IP.IsLoopback()) {
		return g.needsKey()
	}
	return nil
}

// guardHandler is a handler behind the guard. A page of another site whose name leads to this
// address (DNS rebinding) is refused by the Host of its requests, with 403; a request
// without the key with 401. Headers that proxies add do not count.
func (g *pageGuard) guardHandler(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch {
		case !g.answers(r.Host):
			http.Error(w, fmt.Sprintf("Host %.100q is refused: ask for the IP address or localhost, or start the run with --http-host NAME", r.Host), http.StatusForbidden)
		case !g.admits(r.Header["Authorization"]):
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the key is missing or wrong: send the header Authorization: Bearer KEY with the key of --http-key-file", http.StatusUnauthorized)
		default:
			page.ServeHTTP(w, r)
		}
	})
}

// answers reports whether the host of a request is an IP address, localhost or one of
// the names, with or without a port. An address with a zone is refused: no client sends
// one.
func (g *pageGuard) answers(host string) bool {
	name := host
	if at := strings.LastIndexByte(host, ':'); at >= 0 && !strings.HasSuffix(host, "]") {
		if _, err := strconv.ParseUint(host[at+1:], 10, 16); err != nil {
			return false
		}
		name = host[:at]
	}
	if inner, ok := strings.CutPrefix(name, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		ip, err := netip.ParseAddr(inner)
		return closed && err == nil && ip.Is6() && ip.Zone() == ""
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.Is4()
	}
	return strings.EqualFold(name, "localhost") || slices.ContainsFunc(g.names, func(n string) bool { return strings.EqualFold(n, name) })
}

// admits reports whether a request has the key, if one is needed. It takes as long for
// every key.
func (g *pageGuard) admits(headers []string) bool {
	if g.key == nil {
		return true
	}
	if len(headers) != 1 {
		return false
	}
	scheme, key, _ := strings.Cut(headers[0], " ")
	sum := sha256.Sum256([]byte(key))
	return subtle.ConstantTimeCompare(sum[:], g.key[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}
