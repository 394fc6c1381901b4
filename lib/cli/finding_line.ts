/** Findings for a person: one line each. */
import type { Finding } from '../index.js'
import { printable } from './printable.js'
import type { Colors } from './terminal.js'

/** `severity code path @offset message` */
export function findingLine(finding: Finding, colors: Colors): string {
  const { severity, code, path, offset, message } = finding
  const paint = severity === 'error' ? colors.red : colors.yellow
  const place = [path, `@${offset}`].filter((part) => part !== '').join(' ')
  return `${paint(severity)} ${code} ${colors.dim(printable(place))} ${printable(message)}`
}
