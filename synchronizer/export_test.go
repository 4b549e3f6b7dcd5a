package synchronizer

import "time"

// The tests restart synchronizers beside their members often; these answer at once.
func init() { learnTime = 100 * time.Millisecond }
