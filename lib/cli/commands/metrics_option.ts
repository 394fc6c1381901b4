/** `--metrics`: the address at which Prometheus can read the counts of a running command. */
import { Option } from 'commander'
import { type MetricsOptions, TileworkError } from '../../index.js'

/** @param time - completes the help text: until when the counts can be read */
export function metricsOption(time: string): Option {
  return new Option(
    '--metrics <port>',
    `serve Prometheus metrics at http://127.0.0.1:PORT/metrics while ${time}; ADDRESS:PORT listens on another address`,
  ).argParser(parseMetrics)
}

function parseMetrics(text: string): MetricsOptions {
  const [, host, port] = /^(?:(.+):)?(\d{1,5})$/.exec(text) ?? []
  if (port === undefined) {
    throw new TileworkError('ERR_ARGUMENT', `--metrics takes PORT or ADDRESS:PORT; it is "${text}".`)
  }
  return { port: Number(port), ...(host !== undefined && { host: host.replace(/^\[|\]$/g, '') }) }
}
