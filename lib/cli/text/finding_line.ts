/** Findings as text, one line each. */
import type { Finding } from '../../index.js'
import { formatCount } from './byte_count.js'
import { optionAdvice } from './option_advice.js'
import { printable } from './printable.js'
import type { Colors } from './terminal.js'

/** `severity code path @offset message`; without the path where the message contains it. */
export function findingLine(finding: Finding, colors: Colors): string {
  const { severity, code, path, offset, message } = finding
  const paint = severity === 'error' ? colors.red : colors.yellow
  const where = message.includes(path) ? `@${offset}` : `${path} @${offset}`
  return `${paint(severity)} ${code} ${colors.dim(printable(where))} ${printable(optionAdvice(message))}`
}

/** Most findings that a conversion prints in full; the others are only counted. */
export const FINDINGS_IN_NOTICE = 5

/** One finding of one of several inputs. */
export function findingNotice(input: string, { severity, code, path, message }: Finding): string {
  const where = path === '' || message.includes(path) ? '' : ` (${path})`
  return printable(`${severity}: ${input}: ${code}: ${optionAdvice(message)}${where}`)
}

/** The first findings of an input in full, and the total number where there are more. */
export function findingNotices(input: string, findings: readonly Finding[]): string[] {
  const lines = findings.slice(0, FINDINGS_IN_NOTICE).map((finding) => findingNotice(input, finding))
  if (findings.length <= FINDINGS_IN_NOTICE) return lines
  return [
    ...lines,
    `${printable(input)} has ${formatCount(findings.length, 'finding')}; "tilework check" lists them.`,
  ]
}
