"""Defines projects whose program runs on a small device."""

from .hints import World, command, file, note

BEACON = World(
    {
        "dir": "beacon",
        "remote": "git@github.com:fieldworks/beacon.git",
        "branch": "main",
        "files": [
            "west.yml",
            "app/CMakeLists.txt",
            "app/prj.conf",
            "app/src/main.c",
            "app/src/ble_adv.c",
            "boards/beacon_v2.dts",
            "tests/drivers/testcase.yaml",
            "scripts/provision.py",
        ],
    },
    [
        note("beacon/commits", "subject begins with the subsystem: `ble: what`", "git commit"),
        command(
            "zephyr/build",
            "west build -p auto -b beacon_v2 app -- -DEXTRA_CONF_FILE=debug.conf",
            "build compile firmware",
            "without -p auto a changed board file goes unnoticed",
            priority=8,
        ),
        command(
            "board/flash",
            "west flash --runner openocd",
            "upload probe 烧录 固件",
            "the J-Link licence does not cover this board",
            priority=7,
        ),
        command(
            "board/console", "picocom -b 1000000 /dev/ttyUSB0", "serial uart log 串口", "1 Mbaud, not 115200", uses=4
        ),
        command(
            "board/unbrick",
            "west flash --recover",
            "fix openocd",
            "hold BOOT while plugging in, then run it; clears the read-out lock",
        ),
        command(
            "board/provision",
            "python scripts/provision.py --port /dev/ttyUSB0",
            "",
            "once per board, writes its serial number",
        ),
        command("twister/unit", "west twister -T tests -p native_sim --inline-logs", "test unit"),
        note(
            "ble/interval",
            "the advertising interval is BEACON_ADV_MS in prj.conf, 1000 by certification; the code must not set it",
            "bluetooth radio",
        ),
        note(
            "zephyr/ram",
            "`west build -t ram_report`; the image has to stay below 60 KiB",
            "memory footprint",
            age_h=1100,
        ),
        command(
            "sdk/env",
            "source ~/zephyrproject/.venv/bin/activate",
            "fix west zephyr",
            'west: unknown command "build" when it runs outside of the venv',
        ),
        command("sdk/modules", "west update --narrow -o=--depth=1", "fetch manifest"),
        file("board/schematic", "/srv/hw/beacon_v2/schematic.pdf", "pins circuit"),
    ],
)

LUMEN = World(
    {
        "dir": "lumen-ios",
        "remote": "git@github.com:lumenapp/lumen-ios.git",
        "branch": "develop",
        "branches": ["release/4.2"],
        "files": [
            "Lumen.xcodeproj/project.pbxproj",
            "Lumen/App.swift",
            "Packages/SyncKit/Package.swift",
            "Packages/SyncKit/Sources/SyncKit/SyncEngine.swift",
            "fastlane/Fastfile",
        ],
    },
    [
        note("lumen-ios/commits", "imperative subject, ticket at the end: `(LUM-123)`", "git commit"),
        command(
            "lumen/compile",
            "xcodebuild -scheme Lumen -destination 'platform=iOS Simulator,name=iPhone 15' build | xcbeautify",
            "build xcode",
            priority=8,
        ),
        command(
            "sync-kit/spec",
            "swift test --package-path Packages/SyncKit --parallel",
            "test unit",
            "xcodebuild test boots a simulator for nothing",
        ),
        command(
            "snapshots/record",
            "RECORD=1 bundle exec fastlane snapshots",
            "images reference",
            "only on iPhone 15 with iOS 17.4",
        ),
        command(
            "signing/match",
            "bundle exec fastlane match development --readonly",
            "fix codesign provisioning",
            "a new machine has no profiles",
        ),
        command(
            "simulator/erase",
            "xcrun simctl shutdown all && xcrun simctl erase all",
            "fix reset シミュレータ 初期化",
            "it hangs on the boot logo after an update",
        ),
        command("testflight/beta", "bundle exec fastlane beta", "upload distribute"),
        note(
            "palette/source",
            "colours come from scripts/palette.swift; Palette.xcassets is generated",
            "colour design theme",
        ),
        command("strings/export", "scripts/strings export --all", "translation localisation"),
        command("swiftformat/lint", "swiftformat Lumen Packages --lint", "format style"),
    ],
)

EMBERFALL = World(
    {
        "dir": "emberfall",
        "remote": "https://codeberg.org/cinderworks/emberfall.git",
        "branch": "main",
        "files": ["project.godot", "scenes/hub.tscn", "scripts/player.gd", "scripts/save.gd", "addons/gut/gut.gd"],
    },
    [
        note("emberfall/commits", "art and code never in one commit", "git commit"),
        command("hub/play", "godot4 --path . res://scenes/hub.tscn", "run scene", priority=7),
        command(
            "gut/headless",
            "godot4 --headless -s addons/gut/gut_cmdln.gd -gdir=res://test -gexit",
            "test unit",
            priority=8,
        ),
        command(
            "web/export",
            "godot4 --headless --export-release Web build/web/index.html",
            "html5 release",
            "the templates must be of 4.2.2",
        ),
        command("web/templates", "scripts/get-templates 4.2.2", "fix export template", "No export template found"),
        command("atlas/pack", "python tools/atlas.py art/ --padding 2", "sprites textures"),
        command("art/lfs", "git lfs pull -I art/", "fix png texture", "images are pointers of 130 bytes until then"),
        note(
            "hero/ledge",
            "coyote time is six frames (scripts/player.gd, COYOTE); settled in playtest 9",
            "jump movement physics",
        ),
        note(
            "saves/version", "a changed save needs SAVE_VERSION + 1 and a migration in scripts/save.gd", "savegame load"
        ),
        command("itch/push", "butler push build/web cinderworks/emberfall:web", "publish upload"),
        command("assets/reimport", "rm -rf .godot/imported && godot4 --headless --import", "fix cache import"),
    ],
)

TRAILMIX = World(
    {
        "dir": "trailmix",
        "remote": "git@github.com:outbound/trailmix.git",
        "branch": "main",
        "files": [
            "settings.gradle.kts",
            "gradle.properties",
            "phone/build.gradle.kts",
            "phone/src/main/AndroidManifest.xml",
            "feature/map/build.gradle.kts",
        ],
    },
    [
        note("trailmix/commits", "squash; the subject becomes the note of the store", "git commit"),
        command("phone/install", "./gradlew :phone:installStagingDebug", "deploy apk run", priority=8),
        command("phone/unit", "./gradlew testStagingDebugUnitTest --continue", "test junit", priority=7),
        command("emulator/boot", "emulator -avd Pixel_6_API_34 -no-snapshot -gpu host", "avd virtual device"),
        command(
            "adb/reverse",
            "adb reverse tcp:8080 tcp:8080",
            "fix network localhost",
            "the device cannot reach the machine's server",
        ),
        note(
            "gradle/heap",
            "org.gradle.jvmargs=-Xmx6g -XX:MaxMetaspaceSize=1g in ~/.gradle/gradle.properties",
            "fix gradle metaspace outofmemory",
        ),
        note(
            "map/tiles",
            "tiles come from the style file feature/map/style.json; the key is in local.properties",
            "mapbox",
        ),
        command("bundle/release", "./gradlew bundleRelease -PversionCode=$(date +%s)", "aab play store"),
        command("detekt/baseline", "./gradlew detektBaseline", "lint kotlin"),
        command("sdk/licences", "yes | sdkmanager --licenses", "fix android sdk", age_h=800),
    ],
)
