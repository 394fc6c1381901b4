/** Imported by a measured process: writes its CPU seconds and peak memory to the file that TILEWORK_USAGE names. */
import { readFileSync, writeFileSync } from 'node:fs'

process.on('exit', () => {
  const { userCPUTime, systemCPUTime } = process.resourceUsage()
  const usage = { cpuSeconds: (userCPUTime + systemCPUTime) / 1e6, peakMib: peakKib() / 1024 }
  writeFileSync(process.env.TILEWORK_USAGE, JSON.stringify(usage))
})

/** On Linux `maxRSS` is at least the memory of the process that started this one, because it outlives exec; VmHWM does not. */
function peakKib() {
  try {
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))[1])
  } catch {
    return process.resourceUsage().maxRSS
  }
}
