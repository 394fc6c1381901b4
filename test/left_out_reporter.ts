/** Lists after a run which tests were left out, and why: a skipped test must not look like a passed one. */
import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node'

/** Lines of the list; a run on a machine that lacks much says so in a few. */
const MOST_FILES = 30

export default class LeftOutReporter implements Reporter {
  #isFiltered = false

  onInit({ config }: Vitest): void {
    this.#isFiltered = config.testNamePattern !== undefined
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    // Those that a pattern of names leaves out were not asked for.
    if (this.#isFiltered) return
    const byFile = modules.map((module) => [module, [...module.children.allTests('skipped')]] as const)
    const all = byFile.flatMap(([, tests]) => tests)
    const thirdParty = all.filter(isThirdParty).length
    if (thirdParty > 0) console.log(`left out: ${thirdParty} tests that need third-party files in ../shared`)
    if (all.length === thirdParty) return
    console.log(`left out: ${all.length - thirdParty} tests that need what this machine lacks:`)
    const lines = byFile.flatMap(([module, tests]) =>
      lineOf(
        module,
        tests.filter((test) => !isThirdParty(test)),
      ),
    )
    for (const line of lines.slice(0, MOST_FILES)) console.log(line)
    if (lines.length > MOST_FILES) console.log(`  and ${lines.length - MOST_FILES} files more`)
  }
}

function isThirdParty({ tags }: TestCase): boolean {
  return tags.includes('third-party')
}

/** The tests of a file by name, and the reason where the test gave one. */
function lineOf({ relativeModuleId }: TestModule, tests: readonly TestCase[]): string[] {
  if (tests.length === 0) return []
  const notes = new Set(tests.map((test) => test.result().state === 'skipped' && noteOf(test)))
  const [note] = notes.size === 1 ? notes : []
  const names =
    tests.length === 1 ? tests[0]!.fullName : `${tests.length} tests, the first "${tests[0]!.fullName}"`
  return [`  ${relativeModuleId}: ${names}${note ? ` (${note})` : ''}`]
}

function noteOf(test: TestCase): string | undefined {
  const result = test.result()
  return 'note' in result ? result.note : undefined
}
