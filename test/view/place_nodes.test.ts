import { expect, it } from 'vitest'
import { BOX_HEIGHT, type GraphToPlace, placeNodes } from '../../lib/view/page/graph/place_nodes.js'

function chainWithSkip(nodes: number): GraphToPlace {
  const chain = Array.from({ length: nodes - 1 }, (_, node) => [node, node + 1])
  return {
    nodes,
    widths: new Float64Array(nodes).fill(120),
    edges: Uint32Array.from([...chain, [0, nodes - 1]].flat()),
  }
}

it('leads an edge around the boxes between its ends', () => {
  const nodes = 6
  const { x, y, routes } = placeNodes(chainWithSkip(nodes))
  const route = routes!.at(-1)!
  expect(route.length).toBeGreaterThan(4)
  for (let at = 2; at < route.length - 2; at += 2) {
    for (let node = 1; node < nodes - 1; node++) {
      const isInside =
        Math.abs(route[at]! - x[node]!) < 60 && Math.abs(route[at + 1]! - y[node]!) < BOX_HEIGHT / 2
      expect(isInside, `point ${at / 2} in box ${node}`).toBe(false)
    }
  }
})

it('places a node of a large graph below its inputs', () => {
  const nodes = 3000
  const { y, routes } = placeNodes(chainWithSkip(nodes))
  expect(routes).toBeUndefined()
  for (let node = 1; node < nodes; node++) expect(y[node]!).toBeGreaterThan(y[node - 1]!)
})
