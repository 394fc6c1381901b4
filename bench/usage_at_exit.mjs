/** Imported by a measured process: writes its CPU seconds and peak memory to the file that TILEWORK_USAGE names. */
import { writeFileSync } from 'node:fs'

process.on('exit', () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage()
  const usage = { cpuSeconds: (userCPUTime + systemCPUTime) / 1e6, peakMib: maxRSS / 1024 }
  writeFileSync(process.env.TILEWORK_USAGE, JSON.stringify(usage))
})
