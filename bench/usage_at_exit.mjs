/** Imported by a measured process: writes its CPU seconds and peak memory to the file that TILEWORK_USAGE names. */
import { writeFileSync } from 'node:fs'
import { peakBytes } from '../scripts/peak_memory.mjs'

process.on('exit', () => {
  const { userCPUTime, systemCPUTime } = process.resourceUsage()
  const usage = { cpuSeconds: (userCPUTime + systemCPUTime) / 1e6, peakMib: peakBytes() / 1024 ** 2 }
  writeFileSync(process.env.TILEWORK_USAGE, JSON.stringify(usage))
})
