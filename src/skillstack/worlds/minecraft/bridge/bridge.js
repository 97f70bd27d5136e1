// The bridge between Skillstack and a Minecraft server: requests as lines of JSON on standard input, one answer each on
// standard output, and notices to the user between them. docs/minecraft.md describes them. It ends when its input does.
'use strict'

const answers = process.stdout.write.bind(process.stdout)
console.log = console.info = console.debug = console.warn = console.error // standard output is for answers alone

const readline = require('readline')
const { ping } = require('minecraft-protocol')
const { Player, VERSION } = require('./player')

const JOIN_AT_ONCE = 8 // players; more at a time only keep each other waiting

const players = new Map() // by plot
const address = { host: process.argv[2], port: Number(process.argv[3]) }
const announce = notice => answers(JSON.stringify({ notice }) + '\n')
const account = process.argv[4] && { name: process.argv[4], patience: 1000 * process.argv[5], announce }

const REQUESTS = {
  // Is there a server that we can talk to?
  async hello () {
    const found = await ping({ ...address, closeTimeout: 5000, noPongTimeout: 1000 }).catch(error => {
      throw new Error(`No Minecraft server answers at ${address.host}:${address.port} (${error.message || error.code}).`)
    })
    const version = found.version?.name ?? found.version
    if (!String(version).includes(VERSION)) {
      throw new Error(`The Minecraft server ${address.host}:${address.port} is of version ${version}; version ${VERSION} is needed.`)
    }
    return { version }
  },

  // Let a player join for each plot that has none yet, and build the same rooms on each.
  async build ({ plots, blocks, size, view }) {
    const built = []
    for (let first = 0; first < plots.length; first += JOIN_AT_ONCE) {
      built.push(...await Promise.all(plots.slice(first, first + JOIN_AT_ONCE).map(async plot => {
        if (players.has(plot) && players.get(plot).viewDistance < view) { // it was there for smaller rooms
          players.get(plot).leave()
          players.delete(plot)
        }
        if (!players.has(plot)) {
          const player = new Player(plot, address, view, { account })
          players.set(plot, player)
          await player.join()
        }
        return await players.get(plot).build(blocks, size)
      })))
    }
    return { cells: built[0] }
  },

  async place ({ games }) {
    return { states: await each(games, (player, state) => player.arrange(state)) }
  },

  async step ({ games }) {
    return { states: await each(games, (player, action) => player.act(action)) }
  },

  // Take away what was built on plots, and leave them.
  async leave ({ plots }) {
    const there = plots.filter(plot => players.has(plot))
    try {
      await Promise.all(there.map(plot => players.get(plot).clear()))
    } finally {
      for (const plot of there) {
        players.get(plot).leave()
        players.delete(plot)
      }
    }
    return {}
  }
}

// Do something with the player of each [plot, argument], all at the same time; returns what the game then holds.
async function each (games, act) {
  return await Promise.all(games.map(async ([plot, argument]) => {
    const player = players.get(plot)
    await act(player, argument)
    return player.state()
  }))
}

async function answer (line) {
  const { id, do: name, ...request } = JSON.parse(line)
  try {
    answers(JSON.stringify({ id, ...await REQUESTS[name](request) }) + '\n')
  } catch (error) {
    answers(JSON.stringify({ id, error: error.message }) + '\n')
  }
}

process.on('SIGINT', () => {}) // Ctrl-C is for the program in front, which closes our input in its own time
readline.createInterface({ input: process.stdin }).on('line', answer).on('close', () => process.exit(0))
