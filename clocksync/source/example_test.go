package source_test

import (
	"context"
	"fmt"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
)

func ExampleMeasured() {
	operator, err := source.Operator(5*time.Millisecond, clocksync.UTC)
	if err != nil {
		fmt.Println(err)
		return
	}
	clock, err := source.Measured(source.MeasuredOptions{Timeline: clocksync.UTC}, operator)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer clock.Close()
	if err := clock.Wait(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	quality := clock.Quality()
	fmt.Println(quality.Source, quality.Status, "assumed:", quality.Assumed)
	fmt.Println(clock.Now().Within.Bounded())
	// Output:
	// fixed synchronized assumed: true
	// true
}
