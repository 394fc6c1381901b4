/**
 * Reports everything wrong with a checkpoint: the rules of opening with every name that a pickle would import, checksums, which
 * torch does not compare, and the indices of sparse tensors.
 */
import type { ByteSource } from '../../bytes/source.js'
import { type Finding, TileworkError } from '../../errors.js'
import { CooTensor } from '../../tensor/sparse.js'
import { checkContent } from '../../zip/check_content.js'
import { InflatedSource } from '../../zip/inflated_source.js'
import type { Content } from '../../zip/walk.js'
import type { Budget } from '../budget.js'
import { FileHead } from '../file_head.js'
import type { ReadOptions } from '../format.js'
import { quote } from '../quote.js'
import { Report } from '../report.js'
import type { NamedTensor } from './checkpoint.js'
import { containerOf } from './detect.js'
import { FORMAT_NAME } from './schema.js'
import { walkShards } from './shards.js'
import { makeTensor } from './tensor_list.js'
import { budgetOf, walkCheckpoint } from './walk.js'

/** @throws TileworkError only what the source throws: ERR_IO, ERR_FILE_CHANGED, ERR_CLOSED */
export async function check(source: ByteSource, options: ReadOptions): Promise<Finding[]> {
  const report = new Report(FORMAT_NAME, options.level, 'collect')
  const budget = budgetOf(options, source)
  const walk = {
    ...{ budget, report, unknown: options.unknown ?? 'refuse' },
    visit: (content: Content) => checkMember(content, budget, report),
  }
  const isIndex = (await containerOf(await FileHead.read(source))) === 'index'
  const found = await (isIndex ? walkShards(source, walk, options.sibling) : walkCheckpoint(source, walk))
  for (const tensor of found?.tensors ?? [])
    if (tensor.form.kind === 'sparse') await checkIndices(tensor, report)
  return report.findings()
}

async function checkMember(content: Content, budget: Budget, report: Report): Promise<void> {
  // Deflated data may be a thousand times as long as the file; tensors of such a member exceed the limit too.
  if (content.end - content.start > budget.limit('totalBytes')) return
  await checkContent(content, report)
  if (content.source instanceof InflatedSource) content.source.rewind()
}

async function checkIndices(named: NamedTensor, report: Report): Promise<void> {
  const path = `tensors[${quote(named.name)}]`
  try {
    const tensor = makeTensor(named)
    const disorder = tensor instanceof CooTensor ? await tensor.firstDisorder() : undefined
    // torch adds values at one index; a coordinate list here takes the last.
    if (disorder) report.note('ERR_COO_DUPLICATE', disorder.message, { path, offset: 0 })
  } catch (error) {
    if (!(error instanceof TileworkError) || !/^ERR_(COO|COMPRESSED|NO_DATA)/.test(error.code)) throw error
    report.broken(error.code, error.message, { path, offset: error.offset ?? 0 })
  }
}
