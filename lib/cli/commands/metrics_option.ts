/** `--metrics`: where Prometheus reads the counts of a command while it runs. */
import { Option } from 'commander'
import { type MetricsOptions, TileworkError } from '../../index.js'

/** @param time - how long the counts can be read, in words */
export function metricsOption(time: string): Option {
  return new Option(
    '--metrics <port>',
    `answer Prometheus at http://127.0.0.1:PORT/metrics while ${time}; ADDRESS:PORT listens elsewhere`,
  ).argParser(parseMetrics)
}

function parseMetrics(text: string): MetricsOptions {
  const [, host, port] = /^(?:(.+):)?(\d{1,5})$/.exec(text) ?? []
  if (port === undefined) {
    throw new TileworkError('ERR_ARGUMENT', `--metrics takes PORT or ADDRESS:PORT; it is "${text}".`)
  }
  return { port: Number(port), ...(host !== undefined && { host: host.replace(/^\[|\]$/g, '') }) }
}
