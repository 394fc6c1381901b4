/** The routes of the server below its token. */
import { type Answer, json } from './answer.js'
import { differences } from './differences.js'
import { graphColumns, inferredTypes, listGraphs, nodeFacts, placedFindings } from './graphs.js'
import { errorTile, heatMapTile } from './heat_map.js'
import { boundLayout, explainReorder, listDtypes, listLayouts, planeOffsets } from './layouts.js'
import type { Parameters } from './parameters.js'
import { factsOf, listFiles, listTensors, statisticsOf, summaryOf } from './tensors.js'
import { valuesWindow } from './values_window.js'
import type { KnownFiles } from './viewed_files.js'

/** What a route may use; `signal` fires when the browser no longer waits. */
export interface Request {
  readonly files: KnownFiles
  readonly parameters: Parameters
  readonly signal: AbortSignal
}

type Route = (request: Request) => Answer | Promise<Answer>

const answering =
  (of: (request: Request) => unknown): Route =>
  async (request) =>
    json(await of(request))

export const ROUTES: Readonly<Record<string, Route>> = {
  '/api/files': answering(({ files }) => listFiles(files)),
  '/api/summary': answering(({ files, parameters }) => summaryOf(files.of(parameters))),
  '/api/tensors': answering(({ files, parameters, signal }) =>
    listTensors(files.of(parameters), parameters, signal),
  ),
  '/api/tensor': answering(({ files, parameters }) => factsOf(files, parameters)),
  '/api/statistics': answering(({ files, parameters, signal }) => statisticsOf(files, parameters, signal)),
  '/api/values': answering(({ files, parameters }) => valuesWindow(files, parameters)),
  '/api/tile': ({ files, parameters, signal }) => heatMapTile(files, parameters, signal),
  '/api/layouts': answering(() => ({ layouts: listLayouts(), dtypes: listDtypes() })),
  '/api/layout': answering(({ parameters }) => boundLayout(parameters)),
  '/api/offsets': answering(({ parameters }) => planeOffsets(parameters)),
  '/api/explain': answering(({ parameters }) => explainReorder(parameters)),
  '/api/graphs': answering(({ files, parameters }) => listGraphs(files.of(parameters))),
  '/api/graph': answering(({ files, parameters }) => graphColumns(files, parameters)),
  '/api/types': answering(({ files, parameters }) => inferredTypes(files, parameters)),
  '/api/node': answering(({ files, parameters }) => nodeFacts(files, parameters)),
  '/api/findings': answering(({ files, parameters }) => placedFindings(files.of(parameters))),
  '/api/diff': answering(({ files, parameters, signal }) => differences(files, parameters, signal)),
  '/api/errors': ({ files, parameters, signal }) => errorTile(files, parameters, signal),
}
