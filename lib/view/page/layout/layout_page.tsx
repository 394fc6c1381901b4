/** The memory of any shape in any layout: the logical tensor on the left, its memory on the right. */
import { useEffect, useState } from 'preact/hooks'
import type { LayoutFacts } from '../../protocol.js'
import { ask } from '../api.js'
import { Awaited, Choice, TextField } from '../parts/parts.js'
import { useLoad } from '../parts/use_load.js'
import { replaceRoute } from '../route.js'
import { COLOURINGS, type Colouring, choiceOf, type LayoutChoice, listText } from './choice.js'
import { LayoutView } from './layout_view.js'

interface Layouts {
  readonly layouts: readonly LayoutFacts[]
  readonly dtypes: readonly string[]
}

export function LayoutPage({ query }: { query: URLSearchParams }) {
  const layouts = useLoad('layouts', (signal) => ask<Layouts>('layouts', {}, signal))
  return (
    <Awaited loaded={layouts}>{(all) => <Chosen key={query.toString()} all={all} query={query} />}</Awaited>
  )
}

function Chosen({ all, query }: { all: Layouts; query: URLSearchParams }) {
  const [choice, setChoice] = useState(() => choiceOf(query))
  const [colouring, setColouring] = useState<Colouring>('memory')
  const set = (part: Partial<LayoutChoice>): void => setChoice({ ...choice, ...part })
  useEffect(() => replaceRoute('layout', { ...choice, file: query.get('file') ?? undefined }), [choice])
  const { name, other, shape, dtype, lower, upper } = choice
  return (
    <>
      <div class="fields">
        <TextField
          label="Layout"
          value={name}
          list="layouts"
          width={24}
          onChange={(text) => set({ name: text })}
        />
        <TextField
          label="Compare with"
          value={other}
          list="layouts"
          width={24}
          onChange={(text) => set({ other: text })}
        />
        <TextField label="Shape" value={shape} onChange={(text) => set({ shape: text })} />
        <Choice
          label="Element type"
          value={dtype}
          names={all.dtypes.filter((each) => each !== 'string')}
          onChange={(text) => set({ dtype: text })}
        />
        <TextField label="Padding before" value={lower} width={8} onChange={(text) => set({ lower: text })} />
        <TextField label="Padding after" value={upper} width={8} onChange={(text) => set({ upper: text })} />
        <Choice label="Colours follow" value={colouring} names={COLOURINGS} onChange={setColouring} />
        <datalist id="layouts">
          {all.layouts.map((each) => (
            <option key={each.name} value={each.name}>
              {each.order}
            </option>
          ))}
        </datalist>
      </div>
      <LayoutView choice={choice} colouring={colouring} />
      {other !== '' && (
        <>
          <LayoutView choice={{ ...choice, name: other }} colouring={colouring} />
          <Explanation choice={choice} />
        </>
      )}
      {other === '' && <Explanation choice={{ ...choice, other: name, name: 'row_major' }} />}
    </>
  )
}

/** How a reorder from one layout to the other runs: loop nest, kernel, parts. */
function Explanation({ choice }: { choice: LayoutChoice }) {
  const { name, other, shape, dtype } = choice
  const query = { from: name, to: other, shape: listText(shape), dtype }
  const found = useLoad(JSON.stringify(query), (signal) => ask<{ text: string }>('explain', query, signal))
  return (
    <section aria-label="Reorder">
      <h2>
        Reorder from {name} to {other}
      </h2>
      <Awaited loaded={found}>{({ text }) => <pre tabIndex={0}>{text}</pre>}</Awaited>
    </section>
  )
}
