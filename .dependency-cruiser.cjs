/**
 * Import rules of `lib`, checked by `npm run lint:imports`. Data flows one way, from byte sources through formats and
 * tensors to the pipeline; an import against that direction makes a part impossible to understand or test alone.
 * `test/package/import_rules.test.ts` proves that each rule refuses what it names.
 */
const { join } = require('node:path')

const ENTRIES = '^lib/(index|onnx|tmfile|layout|remote|formats|queue)\\.ts$'

const INTERNAL = '^lib/internal\\.ts$'

const ENTRIES_AND_COMMAND = [ENTRIES, '^lib/cli/main\\.ts$']

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'no-cycles',
      comment: 'Move the shared part into a file of its own, or pass it as an argument. Type imports count.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'formats-are-independent',
      comment:
        'A file format never knows another one; code that needs two belongs to lib/pipeline or lib/bridges.',
      severity: 'error',
      from: { path: '^lib/formats/([^/]+)/' },
      to: { path: '^lib/formats/[^/]+/', pathNot: '^lib/formats/$1/' },
    },
    {
      name: 'formats-below-models',
      comment: 'A format is bytes; graphs as objects, and what is done to them, are models on top of it.',
      severity: 'error',
      from: { path: '^lib/formats/' },
      to: { path: '^lib/models/' },
    },
    {
      name: 'models-are-independent',
      comment: 'The models of a format know that format alone; code that needs two belongs to lib/bridges.',
      severity: 'error',
      from: { path: '^lib/models/([a-z]+)' },
      to: {
        path: '^lib/(?:formats|models)/[^/]+/',
        pathNot: ['^lib/formats/$1/', '^lib/models/$1[_/]'],
      },
    },
    {
      name: 'models-below-optimization',
      comment: 'A model does not know how it is simplified or compressed, and is loaded without either.',
      severity: 'error',
      from: { path: '^lib/models/([a-z]+)/' },
      to: { path: '^lib/models/$1_' },
    },
    {
      name: 'compression-beside-optimization',
      comment:
        'A simpler model and smaller element types are asked for separately; what both need is edit or document.',
      severity: 'error',
      from: { path: '^lib/models/(onnx_[^/]+)/' },
      to: { path: '^lib/models/onnx_', pathNot: '^lib/models/$1/' },
    },
    {
      name: 'documents-below-passes',
      comment: 'A document does not know what is done to it: passes are functions that take it.',
      severity: 'error',
      from: { path: '^lib/models/onnx/document/' },
      to: { path: '^lib/models/', pathNot: '^lib/models/onnx/document/' },
    },
    {
      name: 'evaluation-below-inference',
      comment:
        'Values of nodes follow from nodes alone; inference, passes and bridges are built on top of them.',
      severity: 'error',
      from: { path: '^lib/models/onnx/evaluate/' },
      to: { path: '^lib/models/', pathNot: '^lib/models/onnx/(evaluate|document)/' },
    },
    {
      name: 'rewriting-below-passes',
      comment: 'Rewriting knows documents and types, and none of the passes that are written as rules.',
      severity: 'error',
      from: { path: '^lib/models/onnx_optimize/rewrite/' },
      to: {
        path: '^lib/models/(onnx_|onnx/(compose|opset|check)/)',
        pathNot: '^lib/models/onnx_optimize/rewrite/',
      },
    },
    {
      name: 'models-below-pipeline',
      comment: 'Models are edited in memory; opening and saving are built on top of them.',
      severity: 'error',
      from: { path: '^lib/models/' },
      to: { path: '^lib/(pipeline|bridges|device)/' },
    },
    {
      name: 'cli-uses-public-entries',
      comment:
        'What the command line can do, a program must be able to do: add it to a public entry. lib/internal.ts has what reads its arguments and prints.',
      severity: 'error',
      from: { path: '^lib/cli/' },
      to: {
        path: '^lib/',
        pathNot: [
          '^lib/cli/',
          '^lib/package_version\\.ts$',
          '^lib/view/server/server\\.ts$',
          ENTRIES,
          INTERNAL,
        ],
      },
    },
    {
      name: 'no-imports-of-cli',
      comment: 'The library never depends on the command line.',
      severity: 'error',
      from: { path: '^lib/', pathNot: '^lib/cli/' },
      to: { path: '^lib/cli/' },
    },
    {
      name: 'no-imports-of-view',
      comment: 'The page is on top of the library; only its command starts the server.',
      severity: 'error',
      from: { path: '^lib/', pathNot: '^lib/(view/|cli/commands/view\\.ts$)' },
      to: { path: '^lib/view/' },
    },
    {
      name: 'page-runs-in-a-browser',
      comment: 'The page has what the browser has, and of the library the types of the answers.',
      severity: 'error',
      from: { path: '^lib/view/page/' },
      to: {
        path: '^lib/|^node:',
        pathNot: '^lib/view/(page/|protocol\\.ts$)',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'no-imports-of-page',
      comment: 'The page is bundled for browsers; the server ships it as files.',
      severity: 'error',
      from: { path: '^lib/', pathNot: '^lib/view/page/' },
      to: { path: '^lib/view/page/' },
    },
    {
      name: 'no-imports-of-entries',
      comment: 'Import the file that defines the name; entries only collect public names.',
      severity: 'error',
      from: { path: '^lib/', pathNot: ['^lib/cli/', ENTRIES] },
      to: { path: [ENTRIES, INTERNAL] },
    },
    {
      name: 'bytes-dtypes-layouts-below-tensors',
      comment: 'Byte sources, element types and layouts are described without tensors.',
      severity: 'error',
      from: { path: '^lib/(bytes|dtype|layout|native)/' },
      to: { path: '^lib/(tensor|formats|models|pipeline)/' },
    },
    {
      name: 'tensors-below-formats',
      comment: 'Tensors do not know where their bytes were stored.',
      severity: 'error',
      from: { path: '^lib/(tensor|device)/' },
      to: { path: '^lib/(formats|models|pipeline)/' },
    },
    {
      name: 'formats-below-pipeline',
      comment: 'A format reads and writes one file; opening, converting and saving are built on top of it.',
      severity: 'error',
      from: { path: '^lib/formats/' },
      to: { path: '^lib/(pipeline|bridges|device)/' },
    },
    {
      name: 'bridges-below-pipeline',
      comment:
        'A bridge converts the model of one format to that of another; opening and saving are built on top of it.',
      severity: 'error',
      from: { path: '^lib/bridges/' },
      to: { path: '^lib/(pipeline|device|native|cli)/' },
    },
    {
      name: 'native-code-behind-library',
      comment:
        'Formats parse in TypeScript and the command line calls the library; neither calls the addon itself.',
      severity: 'error',
      // The ONNX reader finds the tensors of a plain model in native code, which halves the time of a first open.
      from: { path: '^lib/(formats|models|cli)/', pathNot: '^lib/formats/onnx/(tensor/|walk\\.ts$)' },
      to: { path: '^lib/native/' },
    },
    {
      name: 'no-unused-files',
      comment: 'No public entry and no command reaches this file. Remove it.',
      severity: 'error',
      from: { path: ENTRIES_AND_COMMAND },
      to: {
        path: '^lib/',
        pathNot: [...ENTRIES_AND_COMMAND, '^lib/view/page/', '\\.d\\.ts$'],
        reachable: false,
      },
    },
    {
      name: 'no-development-packages',
      comment: 'A user does not have them. Move the package to "dependencies", or import its types alone.',
      severity: 'error',
      // The page's packages are bundled into it.
      from: { path: '^lib/', pathNot: '^lib/view/page/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'unknown'], dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'no-unresolved-imports',
      comment: 'The imported file does not exist.',
      severity: 'error',
      from: { path: '^lib/' },
      to: { couldNotResolve: true },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: join(__dirname, 'tsconfig.json') },
    doNotFollow: { path: 'node_modules' },
  },
}
