// Package telemetry is what agents and synchronizers show of themselves to those
// who operate them: the stable list of their metrics, the spans of
// decisions and the form in which their contexts travel, and a log that a flood does not drown.
//
// It uses the API of OpenTelemetry alone, never an SDK and never a global
// provider: what to do with the numbers is the program's matter.
package telemetry
