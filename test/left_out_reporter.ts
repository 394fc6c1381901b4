/** Prints after a run how many tests were left out, and why: a skipped test must not look like a passed one. */
import type { Reporter, TestModule } from 'vitest/node'

export default class LeftOutReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const skipped = modules.flatMap((module) => [...module.children.allTests('skipped')])
    const thirdParty = skipped.filter(({ tags }) => tags.includes('third-party')).length
    if (thirdParty > 0) console.log(`left out: ${thirdParty} tests that need third-party files in ../shared`)
    const others = skipped.length - thirdParty
    if (others > 0) console.log(`left out: ${others} tests that need what this machine lacks (listed above)`)
  }
}
