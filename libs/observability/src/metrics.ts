import perfHooks from 'node:perf_hooks';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { EventLoopLag } from './event-loop-lag.js';

/** The process's metrics, as `/metrics` shows them. Names begin with `sluice_`. */
export const metrics = new Registry();

/** Event-loop lag, memory and CPU of the process. Call the returned function once per second. */
export function collectProcessMetrics(): () => void {
  const lag = new EventLoopLag();
  const { monitorEventLoopDelay } = perfHooks;
  // prom-client would also wake an idle process for each sample, and count the time between two samples as lag
  perfHooks.monitorEventLoopDelay = () => lag as unknown as ReturnType<typeof monitorEventLoopDelay>;
  collectDefaultMetrics({ register: metrics });
  perfHooks.monitorEventLoopDelay = monitorEventLoopDelay;
  return () => lag.look();
}

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
