import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

/** The process's metrics, as `/metrics` shows them. Names begin with `sluice_`. */
export const metrics = new Registry();

/** Event-loop lag, memory and CPU of the process. */
// the default precision of 10 ms wakes an idle process a hundred times a second: a third of a percent of a core
export const collectProcessMetrics = (): void => collectDefaultMetrics({ register: metrics, eventLoopMonitoringPrecision: 100 });

export const counter = <Label extends string = never>(name: string, help: string, labelNames: Label[] = []): Counter<Label> =>
  new Counter({ name: `sluice_${name}`, help, labelNames, registers: [metrics] });

export const gauge = <Label extends string = never>(name: string, help: string, labelNames: Label[] = []): Gauge<Label> =>
  new Gauge({ name: `sluice_${name}`, help, labelNames, registers: [metrics] });

/** Seconds. */
export const histogram = <Label extends string = never>(name: string, help: string, labelNames: Label[] = []): Histogram<Label> =>
  new Histogram({
    name: `sluice_${name}`,
    help,
    labelNames,
    registers: [metrics],
    buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30],
  });
