// Somebody else on the server says what stands on a plot: node onlooker.js FOLDER PORT PLOT X Y Z, the size of the box.
'use strict'

const { createRequire } = require('module')
const [, , folder, port, plot, ...size] = process.argv
const { Player } = createRequire(folder + '/bridge.js')('./player')

const onlooker = new Player(Number(plot), { host: '127.0.0.1', port: Number(port) }, 2, { username: 'onlooker' })
const [width, height, depth] = size.map(Number)
onlooker.join().then(() => onlooker.see([width, height, depth])).then(() => {
  const found = []
  for (let y = 0; y < height; y++) {
    for (let z = 0; z < depth; z++) for (let x = 0; x < width; x++) found.push([onlooker.nameAt([x, y, z]), x, y, z])
  }
  process.stdout.write(JSON.stringify(found.filter(([name]) => name !== 'air')))
  process.exit(0)
})
