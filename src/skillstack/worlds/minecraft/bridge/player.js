// One player of the game on a plot of its own: it joins, builds its rooms, and takes discrete steps as Malmo's agents do.
'use strict'

const mineflayer = require('mineflayer')
const createItem = require('prismarine-item')
const { Vec3 } = require('vec3')

const VERSION = '1.16.5'
const ORIGIN = new Vec3(4096, 100, 4096) // of plot 0: a corner of a chunk, high up, far from where players spawn
const SPACING = 256 // blocks from plot to plot, so that no player sees or hears of another
const ROW = 32 // plots side by side before the next row begins
const CHUNK = 16 // blocks
const HOP = 8 // blocks; servers send back whoever moves further at once
const SENTINEL = [0, -1, 0] // the place under the floor whose change says that all before it is done
const HAND = 36 // the first slot of the bar at the bottom
const PATIENCE = 1500 // ms until a request that the server did not answer is made again; then longer each time
const TRIES = 6
const ARRIVAL = 30_000 // ms until a player must be in the game
const REFUSAL = /permission|unknown|not found/i // what servers say to a player who may not use a command

// x grows to the east, z to the south; facings are north, east, south, west.
const FORWARD = [new Vec3(0, 0, -1), new Vec3(1, 0, 0), new Vec3(0, 0, 1), new Vec3(-1, 0, 0)]
const NOTCHIAN_YAW = [180, 270, 0, 90] // degrees, as the protocol has it
const MOVES = [0, 2, 3, 1] // forward, backward, left, right, in quarter turns to the right
const TURN_LEFT = 4
const TURN_RIGHT = 5
const PICK_UP = 6

class Player {
  // With an `account`, { name, patience, announce }, it signs in to Microsoft; the user is told what to do for that.
  constructor (plot, address, viewDistance, { username = `skillstack${plot}`, account } = {}) {
    this.account = account
    this.username = username
    this.origin = ORIGIN.offset(SPACING * (plot % ROW), 0, SPACING * Math.floor(plot / ROW))
    this.address = address
    this.viewDistance = viewDistance
    this.facing = 0
    this.dirty = true
    this.standing = []
    this.free = [] // cells of the rooms that were built as air, where wool may stand
  }

  // Join the server, pass its checks, and go to the plot. A rejection is a sentence for the user.
  async join () {
    const bot = this.bot = mineflayer.createBot({
      ...this.address,
      ...login(this.username, this.account),
      version: VERSION,
      hideErrors: true,
      viewDistance: this.viewDistance,
      checkTimeoutInterval: 120_000,
      plugins: { physics: false } // we move in whole blocks, and answer the server's own moves below
    })
    this.ended = new Promise((resolve, reject) => {
      bot.on('error', error => reject(new Error(`${name(this.address)} cannot be joined: ${error.message || error.code || error}`)))
      bot.once('kicked', reason => reject(new Error(`${name(this.address)} sent the player away: ${plain(reason)}`)))
      bot.once('end', reason => reject(new Error(`${name(this.address)} ended the connection (${reason}).`)))
    })
    this.ended.catch(() => {}) // whoever waits next is told
    bot._client.on('position', packet => this.moved(packet))
    bot.on('messagestr', text => { if (REFUSAL.test(text)) this.refusal = text })
    if (this.account) {
      const signedIn = new Promise(resolve => bot._client.once('session', resolve))
      await this.within(this.account.patience, signedIn, `see ${this.account.name}, whose sign-in to Microsoft was not finished`)
    }
    await this.within(ARRIVAL, new Promise(resolve => bot.once('spawn', resolve)), 'let the player in')
    if (bot.game.gameMode !== 'creative') {
      bot.chat('/gamemode creative')
      await this.within(3000, until(bot, 'game', () => bot.game.gameMode === 'creative').promise,
        `let ${bot.username} play in creative mode, which is needed: make it an operator, or creative mode the default`)
    }
    bot.setQuickBarSlot(0)
    bot.on('blockUpdate', () => { this.dirty = true })
    const sentBack = new Promise(resolve => bot.once('forcedMove', resolve))
    this.sendLook() // flying-squid takes a player for arrived after the first look, and puts it back to its start then
    await Promise.race([sentBack, sleep(300), this.ended])
    await this.goTo(this.origin.offset(1.5, 1, 1.5))
  }

  // Far away by the server's own command, which only operators may use.
  async goTo (target) {
    const { bot } = this
    const there = () => bot.entity.position.distanceTo(target) < 2
    await this.insist(() => bot.chat(`/tp ${bot.username} ${fixed(target)}`), there, bot, ['forcedMove'],
      `teleport ${bot.username}: make it an operator`)
    this.setPosition(target)
  }

  // Wait until all chunks of a box have been sent: till then every block looks like air.
  async see ([width, , depth]) {
    const chunks = []
    for (let x = 0; x < width + CHUNK; x += CHUNK) for (let z = 0; z < depth + CHUNK; z += CHUNK) chunks.push([Math.min(x, width - 1), 0, Math.min(z, depth - 1)])
    const stir = () => [0.1, 0].forEach(x => this.setPosition(this.origin.offset(1.5 + x, 1, 1.5)))
    const stirring = setInterval(stir, 50) // flying-squid forgets to send chunks to who arrives while it sends others
    try {
      await this.insist(() => {}, () => chunks.every(at => this.bot.world.getColumnAt(this.place(at))), this.bot, ['chunkColumnLoad'],
        'send the land around the rooms')
    } finally {
      clearInterval(stirring)
    }
  }

  // Build rooms: `blocks` are [name, x, y, z] within a box of `size`, all else in it is air.
  async build (blocks, size) {
    await this.see(size)
    const wanted = new Map(blocks.map(([name, ...at]) => [String(at), name]))
    const commands = []
    const cells = []
    for (let y = 0; y < size[1]; y++) for (let z = 0; z < size[2]; z++) for (let x = 0; x < size[0]; x++) cells.push([x, y, z])
    for (const at of cells) {
      const name = wanted.get(String(at)) ?? 'air'
      const found = this.nameAt(at)
      if (found === name) continue
      if (!isOurs(found)) throw new Error(`There is ${found} at ${this.place(at)}, where the rooms would be built; clear the place or use another server.`)
      commands.push([name, at])
    }
    await this.setBlocks(commands)
    for (const at of cells) {
      if (this.nameAt(at) !== (wanted.get(String(at)) ?? 'air')) throw new Error(`The server did not build the rooms at ${this.place(at)}.`)
    }
    this.box = cells
    this.free = cells.filter(at => !wanted.has(String(at)))
    this.inFree = new Set(this.free.map(String))
    this.dirty = true
    return cells.map(at => this.nameAt(at))
  }

  // Put the game into a state: { agent: [x, z, facing], held, blocks: [[name, x, y, z]] }, in the plot's own places.
  async arrange ({ agent, held, blocks }) {
    const wanted = new Map(blocks.map(([name, ...at]) => [String(at), name]))
    const commands = []
    for (const [, ...at] of this.read()) if (!wanted.has(String(at))) commands.push(['air', at])
    for (const [name, ...at] of blocks) if (this.nameAt(at) !== name) commands.push([name, at])
    const [x, z, facing] = agent
    await Promise.all([this.setBlocks(commands), this.hold(held)])
    await this.walk(this.origin.offset(x + 0.5, 1, z + 0.5))
    this.facing = facing
    this.sendLook()
  }

  async act (action) {
    if (action < TURN_LEFT) this.move((this.facing + MOVES[action]) % 4)
    else if (action === TURN_LEFT) this.turn(3)
    else if (action === TURN_RIGHT) this.turn(1)
    else if (action === PICK_UP) await this.pickUp()
    else await this.putDown()
  }

  move (direction) {
    const target = this.bot.entity.position.plus(FORWARD[direction])
    const [x, , z] = this.cell(target)
    if (this.nameAt([x, 1, z]) === 'air' && this.nameAt([x, 2, z]) === 'air') this.setPosition(target)
  }

  turn (quarters) {
    this.facing = (this.facing + quarters) % 4
    this.sendLook()
  }

  // Break the top block in front, as one does in creative mode, and take one of its kind into the hand.
  async pickUp () {
    const top = this.inFront().filter(at => this.nameAt(at) !== 'air').pop()
    if (top === undefined || this.held() !== null) return
    const name = this.nameAt(top)
    const position = this.place(top)
    this.bot._client.write('block_dig', { status: 0, location: position, face: 1 })
    this.bot.swingArm()
    this.bot._updateBlockState(position, 0) // the server only answers if it does not agree
    await Promise.all([this.hold(name), this.setBlocks([])])
  }

  async putDown () {
    const { bot } = this
    const at = this.inFront().find(at => this.nameAt(at) === 'air')
    const name = this.held()
    if (at === undefined || name === null) return
    const below = bot.blockAt(this.place(at).offset(0, -1, 0))
    await this.insist(() => bot._genericPlace(below, new Vec3(0, 1, 0), { forceLook: 'ignore', swingArm: 'right' }),
      () => this.nameAt(at) === name, bot, ['blockUpdate'], `let ${bot.username} put a block down`)
    await this.hold(null)
  }

  // The two places for wool in front of the player, from below; none in a wall.
  inFront () {
    const [x, , z] = this.cell(this.bot.entity.position.plus(FORWARD[this.facing]))
    return [[x, 1, z], [x, 2, z]].filter(at => this.inFree.has(String(at)))
  }

  // What the game holds now: x, z, facing, the held block's name, and [name, x, y, z] of whatever stands in the rooms.
  state () {
    const [x, , z] = this.cell(this.bot.entity.position)
    return [x, z, this.facing, this.held(), this.read()]
  }

  read () {
    if (this.dirty) {
      this.dirty = false
      this.standing = this.free.map(at => [this.nameAt(at), ...at]).filter(([name]) => name !== 'air')
    }
    return this.standing
  }

  held () {
    return this.bot.heldItem?.name ?? null
  }

  async hold (name) {
    if (this.held() === name) return
    const { bot } = this
    const Item = createItem(bot.registry)
    const item = name === null ? null : new Item(bot.registry.itemsByName[name].id, 1)
    await this.insist(() => bot._client.write('set_creative_slot', { slot: HAND, item: Item.toNotch(item) }),
      () => this.held() === name, bot.inventory, [`updateSlot:${HAND}`], `put ${name} into the hand of ${bot.username}`)
  }

  // Set blocks by the server's command, and wait until that and all that was sent before has been carried out.
  async setBlocks (commands, last = this.nameAt(SENTINEL) === 'oak_planks' ? 'stone_bricks' : 'oak_planks') {
    const all = [...commands, [last, SENTINEL]]
    const missing = () => all.filter(([name, at]) => this.nameAt(at) !== name)
    await this.insist(() => missing().forEach(([name, at]) => this.bot.chat(`/setblock ${whole(this.place(at))} ${name}`)),
      () => missing().length === 0, this.bot, ['blockUpdate'], `let ${this.bot.username} set blocks: make it an operator`)
  }

  async walk (target) {
    for (;;) {
      const way = target.minus(this.bot.entity.position)
      const length = way.norm()
      if (length === 0) return
      this.setPosition(length <= HOP ? target : this.bot.entity.position.plus(way.scaled(HOP / length)))
    }
  }

  setPosition (target) {
    this.bot.entity.position.set(target.x, target.y, target.z)
    this.bot._client.write('position', { x: target.x, y: target.y, z: target.z, onGround: true })
  }

  sendLook () {
    this.bot._client.write('look', { yaw: NOTCHIAN_YAW[this.facing], pitch: 0, onGround: true })
  }

  // The server moved the player.
  moved ({ x, y, z, flags, teleportId }) {
    const { bot } = this
    const old = bot.entity.position
    old.set(flags & 1 ? old.x + x : x, flags & 2 ? old.y + y : y, flags & 4 ? old.z + z : z)
    bot._client.write('teleport_confirm', { teleportId })
    bot._client.write('position_look', { x: old.x, y: old.y, z: old.z, yaw: NOTCHIAN_YAW[this.facing], pitch: 0, onGround: true })
    bot.emit('forcedMove')
  }

  // Take everything away that was built.
  async clear () {
    const built = this.box.filter(at => this.nameAt(at) !== 'air')
    await this.setBlocks(built.map(at => ['air', at]))
    await this.setBlocks([], 'air')
  }

  leave () {
    this.bot?.end()
  }

  place (at) {
    return this.origin.offset(...at)
  }

  cell (position) {
    const { x, y, z } = position.minus(this.origin).floored()
    return [x, y, z]
  }

  nameAt (at) {
    const state = this.bot.world.getBlockStateId(this.place(at))
    return this.bot.registry.blocksByStateId[state]?.name ?? 'nothing yet'
  }

  // Ask, wait until it is so, and ask again if it takes too long; `events` of the emitter say when to look.
  async insist (ask, done, emitter, events, what) {
    this.refusal = null
    const over = () => done() || this.refusal !== null
    for (let attempt = 1; attempt <= TRIES && !over(); attempt++) {
      ask()
      const looks = [until(this.bot, 'messagestr', over), ...events.map(event => until(emitter, event, over))]
      await Promise.race([...looks.map(look => look.promise), sleep(attempt * PATIENCE), this.ended])
      for (const look of looks) look.stop()
    }
    if (!done()) throw new Error(`${name(this.address)} did not ${what}${this.refusal ? ` (it says: ${this.refusal})` : ''}.`)
  }

  async within (milliseconds, promise, what) {
    const late = Symbol('late')
    if (await Promise.race([promise, this.ended, sleep(milliseconds, late)]) === late) {
      throw new Error(`${name(this.address)} did not ${what}.`)
    }
  }
}

// A promise that is kept when an event finds it done, and a way to stop looking.
function until (emitter, event, done) {
  let look
  const promise = new Promise(resolve => {
    look = () => { if (done()) resolve() }
    emitter.on(event, look)
    look()
  })
  return { promise, stop: () => emitter.off(event, look) }
}

function isOurs (block) {
  return ['air', 'stone_bricks', 'oak_planks', 'spruce_planks', 'cut_sandstone'].includes(block) || block.endsWith('_wool')
}

const sleep = (milliseconds, value) => new Promise(resolve => setTimeout(resolve, milliseconds, value))
const name = ({ host, port }) => `The Minecraft server ${host}:${port}`
const whole = ({ x, y, z }) => `${x} ${y} ${z}`
const fixed = ({ x, y, z }) => [x, y, z].map(part => part.toFixed(1)).join(' ')

// What a bot needs to know to join, with an account or without.
function login (username, account) {
  if (!account) return { username, auth: 'offline' }
  const tell = ({ message }) => account.announce(`To play as ${account.name}: ${message}`)
  return { username: account.name, auth: 'microsoft', onMsaCode: tell }
}

// Why a server sends a player away, in words.
function plain (reason) {
  const said = typeof reason === 'string' && reason.startsWith('{') ? JSON.parse(reason) : reason
  const words = String(said?.text || said?.translate || said)
  return /unverified_username|verify username/i.test(words) ? `${words}. It asks for an account: say --server ACCOUNT@HOST:PORT` : words
}

module.exports = { Player, VERSION, login, plain }
