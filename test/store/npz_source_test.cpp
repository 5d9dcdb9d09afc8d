#include <doctest/doctest.h>

#include "base/temporary_folder.h"
#include "store/foreign_bytes.h"

using namespace quipu;
using quipu_test::bytes_of;
using quipu_test::open_bytes;
using quipu_test::refusal;
using quipu_test::refuses;

namespace {

std::string npy(const std::string& header, const std::string& data, char version = 1) {
  const std::string length = version == 1 ? bytes_of(static_cast<std::uint16_t>(header.size()))
                                          : bytes_of(static_cast<std::uint32_t>(header.size()));
  return "\x93NUMPY" + std::string{version, '\0'} + length + header + data;
}

/// An archive of one array `x`.
std::string npz(const std::string& header, const std::string& data = "12345678", char version = 1) {
  return quipu_test::zip({{"x.npy", npy(header, data, version)}});
}

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return values;
}

}  // namespace

TEST_CASE("npz: what NumPy writes, stored and deflated, in C and in Fortran order") {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    CAPTURE(name);
    const auto source = open_tensor_source(QUIPU_TEST_DATA "/store/foreign/" + std::string(name));
    CHECK(source->format() == "NumPy");
    CHECK(source->tensors().size() == 6);
    CHECK(type_and_shape(source->tensor("c_order")) == "f32 [2, 3, 4]");
    CHECK(type_and_shape(source->tensor("fortran")) == "f64 [2, 3, 4]");
    CHECK(source->read("c_order") == counted(24));
    CHECK(source->read("fortran") == counted(24));
    CHECK(source->read("half") == std::vector<float>{0.5F, -2});
    CHECK(source->read("int") == std::vector<float>{1, -2});
    CHECK(source->read("scalar") == std::vector<float>{7.5F});
    CHECK(source->read("empty").empty());
    CHECK(source->stored(source->tensor("c_order")).has_value() == (std::string(name) == "stored.npz"));
    CHECK(!source->stored(source->tensor("fortran")).has_value());
  }
}

TEST_CASE("npz: Python objects and other types are refused by name") {
  CHECK_THROWS_WITH_AS(open_tensor_source(QUIPU_TEST_DATA "/store/foreign/objects.npz"),
                       doctest::Contains("Python objects"), InputError);
  CHECK(refusal(npz("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n")).empty());
  CHECK(refusal(npz("{'shape': (2,), 'fortran_order': True, 'descr': '<f4'}", "12345678", 3)).empty());
  CHECK(refuses(npz("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }"), ">f4"));
  CHECK(refuses(npz("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }"), "<c8"));
  CHECK(refuses(npz("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }"), "a record"));
}

TEST_CASE("npz: headers that are damaged or claim too much are refused") {
  CHECK(refuses(npz("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"), "12 bytes, and has 8"));
  CHECK(refuses(npz("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }"), "not what NumPy writes"));
  CHECK(refuses(npz("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }"), "claims"));
  CHECK(refuses(npz("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }"), "NumPy writes"));
  CHECK(refuses(npz("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,2), }"), "9 axes"));
  CHECK(refuses(npz("{'descr': '<f4', 'fortran_order': False, }"), "not what NumPy writes"));
  CHECK(refuses(npz("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"), "NumPy writes"));
  CHECK(refuses(npz("{'descr': '<f4', 'fortran_order': __import__('os'), 'shape': (2,), }"), "__import__"));
  CHECK(refuses(npz("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } + x"), "NumPy writes"));
  CHECK(refuses(npz("{'descr': '<f4"), "NumPy writes"));
  CHECK(refuses(npz("", "12345678"), ""));
  CHECK(!refusal(npz("", "")).empty());
  CHECK(refuses(npz("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "12345678", 9), "version 9"));
  CHECK(refuses(quipu_test::zip({{"x.npy", "short"}}), "does not begin like"));
  CHECK(refuses(quipu_test::zip({{"x.npy", npy("{", "").substr(0, 8) + "\xff\xff" + "data"}}), "claims 65545 bytes"));
  CHECK(refuses(quipu_test::zip({{"x.txt", "text"}}), "neither"));
}

TEST_CASE("npz: no beginning of a file is taken for the file") {
  const std::string file = quipu_test::read_whole(QUIPU_TEST_DATA "/store/foreign/deflated.npz");
  REQUIRE(file.size() > 1000);
  CHECK(quipu_test::refused_beginnings(file) == file.size());
}
