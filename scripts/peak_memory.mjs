import { existsSync, readFileSync } from 'node:fs'

/**
 * The peak memory of a process in bytes, of this one by default. On Linux `maxRSS` of a process starts with that of its parent, which
 * may be larger than all that is measured; VmHWM does not. Elsewhere another process cannot be asked.
 */
export function peakBytes(pid = process.pid) {
  const status = `/proc/${pid}/status`
  const [, peak] = existsSync(status) ? (/VmHWM:\s+(\d+)/.exec(readFileSync(status, 'latin1')) ?? []) : []
  if (peak === undefined && pid !== process.pid) return Number.NaN
  return 1024 * Number(peak ?? process.resourceUsage().maxRSS)
}
