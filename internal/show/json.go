package show

import (
	"encoding/json"
	"fmt"
)

// fields is a JSON object; encoding sorts its keys, so equal entries give equal
// lines.
type fields map[string]any

// JSONLine is a value as one line. What cannot be encoded is a fault of the program.
func JSONLine(v any) string {
	line, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("pegasus: %v does not encode: %v", v, err))
	}
	return string(line) + "\n"
}

// list makes the empty list of nil, where JSON would have null.
func list(names []string) []string { return append([]string{}, names...) }
