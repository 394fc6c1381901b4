/** Reports everything wrong with a GGUF file and its shards: the rules of the header, values, and padding that is not zero. */
import type { ByteSource } from '../../bytes/source.js'
import type { Finding } from '../../errors.js'
import { valueText } from '../../value_text.js'
import { Budget } from '../budget.js'
import type { ReadOptions } from '../format.js'
import { Report } from '../report.js'
import { checkPaddings } from './data_cover.js'
import { badValue, textOf } from './metadata_values.js'
import { ARCHITECTURE_KEY, DEFAULT_LIMITS, FORMAT_NAME } from './schema.js'
import { type ReportedFile, walkShards } from './shards.js'

/** @throws TileworkError only what the source throws: ERR_IO, ERR_FILE_CHANGED, ERR_CLOSED */
export async function check(source: ByteSource, { level, limits, sibling }: ReadOptions): Promise<Finding[]> {
  const report = new Report(FORMAT_NAME, level, 'collect')
  const files = await walkShards(source, new Budget(limits, DEFAULT_LIMITS), report, sibling)
  for (const file of files ?? []) {
    checkValues(file)
    await checkPaddings(file.source, file.header.table, file.header, file.report)
  }
  const metadata = files?.[0]?.header.metadata
  if (metadata && metadata.size > 0 && metadata.typeOf(ARCHITECTURE_KEY) !== 'string') {
    const message = `The key ${ARCHITECTURE_KEY} is missing or no text; llama.cpp loads no model without it.`
    report.note('ERR_VALUE', message, { path: 'metadata', offset: 0 })
  }
  return report.findings()
}

/** Texts that are not UTF-8, and bools other than 0 and 1, which every reader takes. */
function checkValues({ header, report }: ReportedFile): void {
  for (const [key, { bytes, type, form }] of header.metadata.stored()) {
    const found = badValue(bytes, type, form)
    if (!found) continue
    const path = `metadata[${valueText(key)}]`
    const message =
      found.what === 'text'
        ? `${path}: a text is not UTF-8: ${valueText(textOf(bytes.subarray(found.at, found.at + 40)))}.`
        : `${path}: a bool is ${bytes[found.at]}; it is 0 or 1.`
    report.deviation('ERR_VALUE', message, { path, offset: 0 })
  }
}
