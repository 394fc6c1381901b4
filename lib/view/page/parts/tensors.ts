/** The tensors of a file, loaded in parts, so that the first rows appear at once. */
import { useEffect, useState } from 'preact/hooks'
import type { TensorColumns } from '../../protocol.js'
import { ask } from '../api.js'
import { nameFilter } from '../text.js'

/** The first answer is small, for a first look without delay. */
const FIRST = 500
const NEXT = 20_000

/** What is loaded so far, by column. */
export type TensorTable = Omit<TensorColumns, 'start'>

const COLUMNS = ['name', 'kind', 'dtype', 'shape', 'layout', 'byteLength', 'elements', 'hasData'] as const

const loaded = new Map<number, TensorTable>()

export function useTensors(file: number): {
  readonly table: TensorTable | undefined
  readonly error?: string
} {
  const [state, setState] = useState<{ file: number; table: TensorTable | undefined; error?: string }>({
    file,
    table: loaded.get(file),
  })
  useEffect(() => {
    const controller = new AbortController()
    const show = (table: TensorTable): void => {
      loaded.set(file, table)
      if (!controller.signal.aborted) setState({ file, table })
    }
    setState({ file, table: loaded.get(file) })
    loadRest(file, loaded.get(file), controller.signal, show).catch((error: unknown) => {
      if (!controller.signal.aborted)
        setState({ file, table: loaded.get(file), error: (error as Error).message })
    })
    return () => controller.abort()
  }, [file])
  return state.file === file ? state : { table: loaded.get(file) }
}

/** Indices of the tensors whose name fits a filter. */
export function matchingRows({ name }: TensorTable, filter: string): readonly number[] {
  const matches = nameFilter(filter)
  const rows: number[] = []
  for (let at = 0; at < name.length; at++) if (matches(name[at]!)) rows.push(at)
  return rows
}

async function loadRest(
  file: number,
  before: TensorTable | undefined,
  signal: AbortSignal,
  show: (table: TensorTable) => void,
): Promise<void> {
  let table = before
  while (table === undefined || table.name.length < table.total) {
    const start = table?.name.length ?? 0
    const count = table === undefined ? FIRST : NEXT
    const part = await ask<TensorColumns>('tensors', { file, start, count }, signal)
    table = joined(table, part)
    show(table)
  }
}

function joined(table: TensorTable | undefined, part: TensorColumns): TensorTable {
  if (!table) return part
  const columns = COLUMNS.map((column) => [column, [...table[column], ...part[column]]])
  return { total: part.total, ...Object.fromEntries(columns) } as TensorTable
}
