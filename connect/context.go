package connect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxFile bounds every file that is read.
const maxFile = 64 << 10

// contextKeys classifies the keys of a context: a value, a path or a URL, in which ~ and
// variables are replaced, a key without meaning here, or a key that must be empty.
var contextKeys = map[string]string{ //nolint:gochecknoglobals // Constant.
	"url": "path", "creds": "path", "nkey": "path", "cert": "path", "key": "path", "ca": "path",
	"token": "value", "user": "value", "password": "value", "inbox_prefix": "value", "user_jwt": "value", "user_seed": "value",
	"tls_first": "switch",

	"description": "ignored", "color_scheme": "ignored",
	"jetstream_domain": "ignored", "jetstream_api_prefix": "ignored", "jetstream_event_prefix": "ignored",

	"nsc": "refused", "socks_proxy": "refused",
	"windows_cert_store": "refused", "windows_cert_match_by": "refused", "windows_cert_match": "refused", "windows_ca_certs_match": "refused",
}

// readContext reads a context of the nats CLI.
func readContext(context value) (l layer, tlsFirst bool, err error) {
	file, err := contextFile(context.text)
	if err != nil {
		return nil, false, fmt.Errorf("context %q of %s: %w", context.text, context.from, err)
	}
	what := fmt.Sprintf("context %s of %s", file, context.from)
	text, err := readFile(file)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", what, err)
	}
	var keys map[string]any
	if err := json.Unmarshal(text, &keys); err != nil { // What it says may quote a secret.
		return nil, false, fmt.Errorf("%s: the file is not one JSON object: write it again with `nats context save`", what)
	}
	l = layer{}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		kind, known := contextKeys[key]
		text, isText := keys[key].(string)
		on, isSwitch := keys[key].(bool)
		list, isList := keys[key].([]any)
		switch empty := isText && text == "" || isSwitch && !on || isList && len(list) == 0 || keys[key] == nil; {
		case !known:
			return nil, false, fmt.Errorf("%s: the key %q is unknown: take it out, or give the credentials in another way", what, key)
		case kind == "ignored" || empty:
		case kind == "refused":
			return nil, false, fmt.Errorf("%s: the key %q is not supported: take it out, and give a credentials file or a certificate instead", what, key)
		case kind == "switch" && isSwitch:
			tlsFirst = on
		case kind == "switch" || !isText:
			return nil, false, fmt.Errorf("%s: the key %q has a value of another type: write a text, or true or false for tls_first", what, key)
		case kind == "value":
			l.add(key, value{text, what})
		default:
			if text, err = expand(text); err != nil {
				return nil, false, fmt.Errorf("%s: the key %q: %w", what, key, err)
			}
			l.add(key, value{text, what})
		}
	}
	return l, tlsFirst, nil
}

// contextFile is the file of a context, which may be one already.
func contextFile(name string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) || strings.HasSuffix(name, ".json") {
		return expand(name)
	}
	dir := os.Getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", errors.New("the home directory is not known: give the file of the context instead of its name")
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "nats", "context", name+".json"), nil
}

// expand replaces ~ at the beginning and variables.
func expand(path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", errors.New("the home directory is not known: write the whole path instead of ~")
		}
		path = home + rest
	}
	unset := ""
	path = os.Expand(path, func(name string) string {
		text, ok := os.LookupEnv(name)
		if !ok {
			unset = name
		}
		return text
	})
	if unset != "" {
		return "", fmt.Errorf("the variable %s is not set: set it, or write its value", unset)
	}
	return path, nil
}

// readFile reads a file of at most maxFile bytes. Its errors name neither the operation nor
// the contents.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("the file cannot be read: %w", err)
	}
	defer f.Close() //nolint:errcheck // It was only read.
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the file cannot be read: %w", err)
	case len(text) > maxFile:
		return nil, fmt.Errorf("the file has more than %d KiB: it is another one than it should be", maxFile>>10)
	}
	return text, nil
}
