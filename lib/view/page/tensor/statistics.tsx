/** Statistics of a tensor and the histogram of its finite values, with linear or logarithmic counts. */
import { scaleLinear, scaleSymlog } from 'd3-scale'
import { useState } from 'preact/hooks'
import type { Meaning, StatisticsAnswer, TensorFacts } from '../../protocol.js'
import { ask } from '../api.js'
import { Awaited, Choice, Facts } from '../parts/parts.js'
import { useLoad } from '../parts/use_load.js'
import { countText, digitsText, numberText } from '../text.js'

/** Larger tensors are counted on request: reading them takes seconds. */
const EAGER_BYTES = 256 * 1024 * 1024
const BINS = 64

interface Props {
  file: number
  facts: TensorFacts
  meaning: Meaning
}

export function Statistics({ file, facts, meaning }: Props) {
  const [isWanted, setWanted] = useState((facts.byteLength ?? 0) <= EAGER_BYTES)
  const key = isWanted ? `${file} ${facts.index} ${meaning}` : undefined
  const query = { file, tensor: facts.index, bins: BINS, as: meaning }
  const found = useLoad(key, (signal) => ask<StatisticsAnswer>('statistics', query, signal))
  return (
    <section aria-label="Statistics">
      <h2>{facts.kind === 'sparse' ? 'Statistics of the entries' : 'Statistics'}</h2>
      {isWanted ? (
        <Awaited loaded={found}>{(answer) => <Numbers answer={answer} />}</Awaited>
      ) : (
        <button type="button" onClick={() => setWanted(true)}>
          Count all elements
        </button>
      )}
    </section>
  )
}

function Numbers({ answer }: { answer: StatisticsAnswer }) {
  const { count, min, max, mean, zeros, nans, infinities, histogram } = answer
  return (
    <>
      <Facts
        facts={[
          ['minimum', numberText(min)],
          ['maximum', numberText(max)],
          ['mean', numberText(mean)],
          ['zeros', `${countText(zeros)} (${count === 0 ? 0 : numberText((100 * zeros) / count)} %)`],
          ['NaN', countText(nans)],
          ['infinities', countText(infinities)],
        ]}
      />
      {histogram && <Histogram histogram={histogram} />}
    </>
  )
}

type Bins = NonNullable<StatisticsAnswer['histogram']>

const WIDTH = 640
const HEIGHT = 180
const BOTTOM = 22
const LEFT = 58
/** Half of the last label. */
const RIGHT = 20

const SCALES = ['linear', 'logarithmic'] as const

function Histogram({ histogram }: { histogram: Bins }) {
  const [scale, setScale] = useState<(typeof SCALES)[number]>('linear')
  const { start, width, counts } = histogram
  const most = counts.reduce((one, other) => Math.max(one, other), 0)
  const x = scaleLinear([start, start + width * counts.length], [LEFT, WIDTH - RIGHT])
  const y = (scale === 'linear' ? scaleLinear() : scaleSymlog()).domain([0, most]).range([HEIGHT - BOTTOM, 8])
  const ticks =
    scale === 'linear' ? scaleLinear([0, most], [0, 1]).ticks(4).filter(Number.isInteger) : powersUpTo(most)
  const text = `Histogram of ${counts.length} bins from ${numberText(start)} to ${numberText(start + width * counts.length)}; the fullest has ${countText(most)} values.`
  return (
    <figure>
      <Choice label="Counts" value={scale} names={SCALES} onChange={setScale} />
      <svg class="histogram" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={text}>
        {ticks.map((tick) => (
          <g key={tick} class="tick">
            <line x1={LEFT} x2={WIDTH - RIGHT} y1={y(tick)} y2={y(tick)} />
            <text x={LEFT - 6} y={y(tick) + 4} text-anchor="end">
              {shortCount(tick)}
            </text>
          </g>
        ))}
        {counts.map((count, bin) => {
          const left = x(start + bin * width)
          return (
            <rect
              key={bin}
              class="bar"
              x={left}
              y={y(count)}
              width={Math.max(1, x(start + (bin + 1) * width) - left - 1)}
              height={Math.max(0, HEIGHT - BOTTOM - y(count))}
              data-count={count}
            >
              <title>{`${numberText(start + bin * width)} to ${numberText(start + (bin + 1) * width)}: ${countText(count)}`}</title>
            </rect>
          )
        })}
        {x.ticks(5).map((tick) => (
          <text key={tick} x={x(tick)} y={HEIGHT - 6} text-anchor="middle">
            {Math.abs(tick) >= 1e4 && Math.abs(tick) < 1e12 ? shortCount(tick) : digitsText(tick, 3)}
          </text>
        ))}
      </svg>
    </figure>
  )
}

/** 0, 1, 100, 10,000 and so on. */
function powersUpTo(most: number): number[] {
  const ticks = [0]
  for (let tick = 1; tick <= most; tick *= 100) ticks.push(tick)
  return ticks
}

function shortCount(count: number): string {
  const size = Math.abs(count)
  if (size >= 1e9) return `${count / 1e9}G`
  if (size >= 1e6) return `${count / 1e6}M`
  return size >= 1e4 ? `${count / 1e3}k` : String(count)
}
