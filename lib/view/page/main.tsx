/** The page of `tilework view`. */
import { render } from 'preact'
import type { FileEntry } from '../protocol.js'
import { ask } from './api.js'
import { DifferencePage } from './difference/difference_page.js'
import { GraphPage } from './graph/graph_page.js'
import { LayoutPage } from './layout/layout_page.js'
import { Overview } from './overview/overview.js'
import './page.css'
import { Awaited } from './parts/parts.js'
import { useLoad } from './parts/use_load.js'
import { hrefOf, numberOf, type Route, useRoute } from './route.js'
import { TensorPage } from './tensor/tensor_page.js'

const TITLES: Readonly<Record<string, string>> = {
  overview: 'Overview',
  tensor: 'Tensor',
  layout: 'Layout',
  graph: 'Graph',
  difference: 'Difference',
}

function Page() {
  const route = useRoute()
  const files = useLoad('files', (signal) => ask<readonly FileEntry[]>('files', {}, signal))
  return <Awaited loaded={files}>{(all) => <Site files={all} route={route} />}</Awaited>
}

function Site({ files, route }: { files: readonly FileEntry[]; route: Route }) {
  const file = Math.min(numberOf(route.query, 'file'), files.length - 1)
  const view = Object.hasOwn(TITLES, route.view) ? route.view : firstView(files)
  const isOfFile = view !== 'layout' && view !== 'difference'
  const title = isOfFile ? `${TITLES[view]}: ${files[file]!.name}` : TITLES[view]!
  document.title = `${title} – tilework view`
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to content
      </button>
      <header>
        <span class="brand">tilework</span>
        <FileChoice files={files} file={file} view={view} />
        <Tabs view={view} file={file} files={files} />
      </header>
      <main id="main" tabIndex={-1}>
        <h1>{title}</h1>
        <View view={view} files={files} file={file} route={route} />
      </main>
    </>
  )
}

/** Two files are opened to be compared. */
function firstView(files: readonly FileEntry[]): string {
  return files.length === 2 ? 'difference' : 'overview'
}

function FileChoice({ files, file, view }: { files: readonly FileEntry[]; file: number; view: string }) {
  if (files.length < 2) return <span class="file">{files[0]?.name}</span>
  return (
    <label class="file">
      <span class="hidden">File</span>
      <select
        value={file}
        onChange={(event) => {
          location.hash = hrefOf(view === 'tensor' ? 'overview' : view, { file: event.currentTarget.value })
        }}
      >
        {files.map(({ name }, at) => (
          <option key={at} value={at}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}

function Tabs({ view, file, files }: { view: string; file: number; files: readonly FileEntry[] }) {
  const isUseful: Readonly<Record<string, boolean>> = {
    graph: files[file]?.hasGraph === true,
    difference: files.length > 1,
  }
  return (
    <nav aria-label="Views">
      {Object.entries(TITLES)
        .filter(([name]) => isUseful[name] !== false || name === view)
        .map(([name, title]) => (
          <a key={name} href={hrefOf(name, { file })} aria-current={name === view ? 'page' : undefined}>
            {title}
          </a>
        ))}
    </nav>
  )
}

function View(props: { view: string; files: readonly FileEntry[]; file: number; route: Route }) {
  const { view, files, file, route } = props
  if (view === 'tensor')
    return <TensorPage file={file} tensor={numberOf(route.query, 'tensor')} total={files[file]!.tensors} />
  if (view === 'layout') return <LayoutPage query={route.query} />
  if (view === 'graph') return <GraphPage key={file} file={file} query={route.query} />
  if (view === 'difference') return <DifferencePage files={files} />
  return <Overview key={file} file={file} entry={files[file]!} query={route.query} />
}

render(<Page />, document.getElementById('page')!)
