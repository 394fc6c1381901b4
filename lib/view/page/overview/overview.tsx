/** What a file holds: its summary, the sizes of its tensors as a treemap, and the list of them. */
import { useMemo, useState } from 'preact/hooks'
import type { FileEntry, FileSummary } from '../../protocol.js'
import { ask } from '../api.js'
import { Awaited, Facts, TextField } from '../parts/parts.js'
import { matchingRows, type TensorTable, useTensors } from '../parts/tensors.js'
import { useLoad } from '../parts/use_load.js'
import { bytesText, countText } from '../text.js'
import { TensorList } from './tensor_list.js'
import { saysSomething, Treemap } from './treemap.js'

export function Overview({ file, entry, query }: { file: number; entry: FileEntry; query: URLSearchParams }) {
  const { table, error } = useTensors(file)
  const [filter, setFilter] = useState(query.get('filter') ?? '')
  const matching = useMemo(() => table && matchingRows(table, filter), [table, filter])
  return (
    <>
      <Summary file={file} entry={entry} table={table} />
      {error !== undefined && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
      {table && (
        <section aria-label="Tensors">
          <h2>Tensors</h2>
          <div class="fields">
            <TextField
              label="Search names (press /)"
              value={filter}
              onChange={setFilter}
              width={28}
              isEager
              isSearch
            />
            <p class="quiet" role="status">
              {statusText(table, matching!.length, filter)}
            </p>
          </div>
          <TensorList file={file} table={table} rows={matching!} />
        </section>
      )}
      {table && saysSomething(table) && (
        <section aria-label="Sizes">
          <h2>Sizes</h2>
          <Treemap
            file={file}
            table={table}
            onPrefix={(prefix) => setFilter(prefix === '' ? '' : `${prefix}*`)}
          />
        </section>
      )}
    </>
  )
}

function statusText({ total, name }: TensorTable, matching: number, filter: string): string {
  if (name.length < total) return `${countText(name.length)} of ${countText(total)} tensors are listed so far`
  return filter === ''
    ? `${countText(total)} tensors`
    : `${countText(matching)} of ${countText(total)} tensors`
}

function Summary(props: { file: number; entry: FileEntry; table: TensorTable | undefined }) {
  const { file, entry, table } = props
  const summary = useLoad(`summary ${file}`, (signal) => ask<FileSummary>('summary', { file }, signal))
  const dtypes = useMemo(() => (table ? dtypeTotals(table) : []), [table])
  const elements = dtypes.reduce((sum, each) => sum + each.elements, 0)
  const bytes = dtypes.reduce((sum, each) => sum + each.bytes, 0)
  return (
    <section aria-label="Summary">
      <Facts
        facts={[
          ['format', entry.format],
          ['file', bytesText(entry.byteLength)],
          ['tensors', countText(entry.tensors)],
          ['elements', `${countText(elements)} in ${bytesText(bytes)}`],
          ...dtypes.map((each): [string, string] => [
            each.dtype,
            `${countText(each.elements)} in ${bytesText(each.bytes)}`,
          ]),
        ]}
      />
      <Awaited loaded={summary}>{(found) => <ModelSummary summary={found} />}</Awaited>
    </section>
  )
}

function dtypeTotals(table: TensorTable): { dtype: string; elements: number; bytes: number }[] {
  const totals = new Map<string, { dtype: string; elements: number; bytes: number }>()
  for (const [at, dtype] of table.dtype.entries()) {
    const total = totals.get(dtype) ?? { dtype, elements: 0, bytes: 0 }
    total.elements += table.elements[at]!
    total.bytes += table.byteLength[at] ?? 0
    totals.set(dtype, total)
  }
  return [...totals.values()].sort((one, other) => other.bytes - one.bytes)
}

/** Operators of a summary. */
const SHOWN_OPERATORS = 30

function ModelSummary({ summary: { facts, operators, findings } }: { summary: FileSummary }) {
  return (
    <>
      {facts.length > 0 && (
        <details open>
          <summary>Model</summary>
          <Facts facts={facts} />
          <p class="chips">
            {operators.slice(0, SHOWN_OPERATORS).map(([name, count]) => (
              <span key={name} class="chip">
                {name} <b>{countText(count)}</b>
              </span>
            ))}
          </p>
        </details>
      )}
      {findings.length > 0 && (
        <ul class="findings" aria-label="Findings">
          {findings.map(({ severity, code, path, message }) => (
            <li key={`${code} ${path}`} class={severity}>
              <b>{severity}</b> {code} {path}: {message}
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
