package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// scrapesAtOnce is how many collections may run at the same time; more are
// answered with 503.
const scrapesAtOnce = 4

// newMetrics returns where metrics go, and the page that shows them as Prometheus
// reads them.
func newMetrics() (metric.MeterProvider, http.Handler, error) {
	registry := prometheus.NewRegistry()
	exporter, err := promexporter.New(
		promexporter.WithRegisterer(registry),
		promexporter.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
		promexporter.WithoutScopeInfo(), // Two labels on every series that never differ.
	)
	if err != nil {
		return nil, nil, err
	}
	page := promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapesAtOnce})
	return sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter)), page, nil
}
